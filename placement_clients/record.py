"""The objects of Placement as values, and how they are parsed from documents."""

import dataclasses
import functools
from collections.abc import Callable, Set
from typing import Any, Generic, TypeVar

from placement_clients.errors import Unavailable

Json = Any
T = TypeVar("T")

# The length of the excerpt from a page that is not a document of Placement.
EXCERPT_CHARACTERS = 200


@dataclasses.dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider. A root has no parent, and is its own root."""

    uuid: str
    name: str
    generation: int
    parent_uuid: str | None
    root_uuid: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """The inventory of one resource class, and how it may be allocated."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 0x7FFFFFFF
    step_size: int = 1
    allocation_ratio: float = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """A part of a provider that is replaced as a whole, at a generation.

    ``name`` is the last step of its path, and the member of its document.
    """

    name: str
    version: str
    parse: Callable[[Json], T]
    render: Callable[[T], Json]


@dataclasses.dataclass(frozen=True, slots=True)
class Held(Generic[T]):
    """The value of a part of a provider, at a generation of the provider."""

    generation: int
    value: T


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """One way to satisfy a request, in the form in which it is claimed.

    ``mappings`` are the providers of each group, by the group's suffix.
    """

    allocations: Json
    mappings: dict[str, list[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Candidates:
    """The ways to satisfy a request, and a summary of the providers in their trees.

    ``summaries`` are by provider UUID, as Placement describes them: ``resources``,
    ``traits``, ``parent_provider_uuid``, ``root_provider_uuid``.
    """

    found: tuple[Candidate, ...]
    summaries: dict[str, Json]


def _parse_inventories(document: Json) -> dict[str, Inventory]:
    fields = [field.name for field in dataclasses.fields(Inventory)]
    return {
        resource_class: Inventory(**{name: each[name] for name in fields})
        for resource_class, each in document.items()
    }


def _render_inventories(inventories: dict[str, Inventory]) -> Json:
    return {name: dataclasses.asdict(each) for name, each in inventories.items()}


INVENTORIES = Part("inventories", "1.26", _parse_inventories, _render_inventories)
TRAITS: Part[Set[str]] = Part("traits", "1.6", frozenset, sorted)
AGGREGATES: Part[Set[str]] = Part("aggregates", "1.19", frozenset, sorted)


def parser(parse: Callable[[Json], T]) -> Callable[[Json], T]:
    """Make a parser raise ``Unavailable`` for documents that are not Placement's."""

    @functools.wraps(parse)
    def wary(document: Json) -> T:
        try:
            return parse(document)
        except (AttributeError, LookupError, TypeError, ValueError) as exc:
            raise Unavailable(
                f"the answer is not from Placement: {excerpt(str(document))}"
            ) from exc

    return wary


def parser_with(**members: type) -> Callable[[Json], Json]:
    """Return a parser of objects that have at least these members, of these types.

    These members suffice to recognise a document of the ledger API.
    """

    @parser
    def parse(document: Json) -> Json:
        for name, kind in members.items():
            if not isinstance(document[name], kind):
                raise TypeError(name)
        return document

    return parse


@parser
def parse_provider(document: Json) -> Provider:
    """Return a resource provider."""
    return Provider(
        document["uuid"],
        document["name"],
        document["generation"],
        document.get("parent_provider_uuid"),
        document.get("root_provider_uuid"),
    )


@parser
def parse_providers(document: Json) -> list[Provider]:
    """Return a list of resource providers."""
    return [parse_provider(each) for each in document["resource_providers"]]


def parse_held(part: Part[T], document: Json) -> Held[T]:
    """Return a part of a provider."""

    @parser
    def parse(document: Json) -> Held[T]:
        generation = document["resource_provider_generation"]
        return Held(generation, part.parse(document[part.name]))

    return parse(document)


@parser
def parse_resources(document: Json) -> dict[str, dict[str, int]]:
    """Return allocations, keyed by consumer or by provider."""
    return {
        holder: dict(each["resources"])
        for holder, each in document["allocations"].items()
    }


@parser
def parse_candidates(document: Json) -> Candidates:
    """Return allocation candidates."""
    candidates = tuple(
        Candidate(each["allocations"], each["mappings"])
        for each in document["allocation_requests"]
    )
    summaries = {
        provider: dict(each)
        for provider, each in document["provider_summaries"].items()
    }
    if (
        unknown := {each for one in candidates for each in one.allocations}
        - summaries.keys()
    ):
        raise ValueError(f"there is no summary of {', '.join(sorted(unknown))}")
    return Candidates(candidates, summaries)


def excerpt(text: str) -> str:
    """Return the beginning of a string, on one line."""
    words = " ".join(text.split())
    return (
        words if len(words) <= EXCERPT_CHARACTERS else f"{words[:EXCERPT_CHARACTERS]}…"
    )

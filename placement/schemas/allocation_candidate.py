"""Allocation candidates on the wire."""

import functools
from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from placement.model.tree import Provider
from placement.questions.candidates import Candidates
from placement.search.engine import Candidate
from placement.search.search import Picks
from placement_foundation.http.schema import (
    INTEGER,
    TEXT,
    TEXT_OR_NULL,
    Field,
    Json,
    View,
    closed_object,
    describe_fields,
    described,
    fragment,
    keyed,
    known,
    listed,
)
from placement_foundation.http.version import ByVersion, Version

# How many summaries of providers are remembered: those of the largest usual answers, a
# thousand candidates whose hosts have 16 providers each.
MOST_REMEMBERED = 16_384
# The same for sets of traits, which hosts of a kind share.
MOST_TRAITS = 4_096

# The amounts taken from the pick of each number, and the numbers for each suffix.
Amounts: TypeAlias = Sequence[tuple[int, Json]]
Mappings: TypeAlias = Sequence[tuple[str, Sequence[int]]]

# At first amounts were a list; later they were keyed by provider.
LISTED = listed(
    closed_object(resource_provider=closed_object(uuid=TEXT), resources=keyed(INTEGER))
)
KEYED = keyed(closed_object(resources=keyed(INTEGER)))
FIELDS = {
    "allocations": Field((1, 10), {}),
    "mappings": Field((1, 34), keyed(listed(TEXT))),
}
SUMMARY_FIELDS = {
    "resources": Field((1, 10), keyed(closed_object(capacity=INTEGER, used=INTEGER))),
    "traits": Field((1, 17), listed(TEXT)),
    "parent_provider_uuid": Field((1, 29), TEXT_OR_NULL),
    "root_provider_uuid": Field((1, 29), TEXT),
}


def _listed(providers: Picks, amounts: Amounts) -> Json:
    return [
        {"resource_provider": {"uuid": providers[number].uuid}, **taken}
        for number, taken in amounts
    ]


def _keyed(providers: Picks, amounts: Amounts) -> Json:
    return {providers[number].uuid: taken for number, taken in amounts}


def _list_resources(provider: Provider, names: Container[str]) -> dict[str, Json]:
    return {
        name: {"capacity": inventory.capacity, "used": inventory.used}
        for name, inventory in provider.inventories.items()
        if name in names
    }


ALLOCATIONS = ByVersion({(1, 10): _listed, (1, 12): _keyed})
ALLOCATIONS_DESCRIBED = ByVersion({(1, 10): LISTED, (1, 12): KEYED})
ALL_RESOURCES = ByVersion({(1, 10): False, (1, 27): True})


def _describe(version: Version) -> Json:
    allocations = {"allocations": ALLOCATIONS_DESCRIBED.at(version)}
    candidate = {**describe_fields(FIELDS, version), **allocations}
    summary = describe_fields(SUMMARY_FIELDS, version)
    return closed_object(
        allocation_requests=listed(closed_object(**candidate)),
        provider_summaries=keyed(closed_object(**summary)),
    )


class _Shape(NamedTuple):
    """The shape of an answer at a microversion.

    ``summary`` names the fields of a summary. ``has_all`` says that these are about all
    resource classes, and not only the requested ones.
    """

    allocations: Callable[[Picks, Amounts], Json]
    is_mapped: bool
    summary: tuple[str, ...]
    has_all: bool


@functools.cache
def _shape_at(version: Version) -> _Shape:
    return _Shape(
        ALLOCATIONS.at(version) or _listed,
        "mappings" in known(FIELDS, version),
        tuple(known(SUMMARY_FIELDS, version)),
        bool(ALL_RESOURCES.at(version)),
    )


@described(_describe)
def render(answer: Candidates, view: View) -> Json:
    """Render candidates, and summaries of the providers in them."""
    shape = _shape_at(view.version)
    return {
        "allocation_requests": _render_candidates(answer.candidates, shape),
        "provider_summaries": _render_summaries(answer, shape),
    }


def _render_candidates(candidates: Iterable[Candidate], shape: _Shape) -> list[Json]:
    """Return candidates, with the fields of the microversion.

    The slots are the same for all. So the amounts depend only on which of the picks are
    the same provider: they are added up once for all candidates of such a pattern.
    """
    patterns: dict[Hashable, tuple[Amounts, Mappings]] = {}
    rendered = []
    for each in candidates:
        providers = each.providers
        is_alone = providers.count(providers[0]) == len(providers)
        key = is_alone or tuple(map(providers.index, providers))
        if key not in patterns:
            patterns[key] = _pattern_of(each)
        amounts, mappings = patterns[key]
        candidate = {"allocations": shape.allocations(providers, amounts)}
        if shape.is_mapped:
            candidate["mappings"] = mapped = {}
            # For so few, a comprehension takes longer.
            for suffix, serving in mappings:
                mapped[suffix] = [providers[number].uuid for number in serving]
        rendered.append(candidate)
    return rendered


def _pattern_of(candidate: Candidate) -> tuple[Amounts, Mappings]:
    """Return the amounts of a candidate, with the numbers of picks as providers."""
    amounts, mappings = candidate.amounts(), candidate.mappings()
    number_of = candidate.providers.index
    return (
        [(number_of(each), {"resources": taken}) for each, taken in amounts.items()],
        [(suffix, list(map(number_of, each))) for suffix, each in mappings.items()],
    )


def _render_summaries(answer: Candidates, shape: _Shape) -> Json:
    summaries = {
        provider.uuid: _summary(provider, shape.summary)
        for provider in answer.summarised
    }
    if shape.has_all:
        return summaries
    return {
        provider.uuid: {
            **summaries[provider.uuid],
            "resources": _list_resources(provider, answer.resource_classes),
        }
        for provider in answer.summarised
    }


@functools.lru_cache(maxsize=MOST_REMEMBERED)
def _summary(provider: Provider, names: tuple[str, ...]) -> Json:
    """Return the summary of a provider, with the fields known at the microversion.

    It is remembered: a provider never changes, and its next state is another value.
    """
    values = {
        "resources": _list_resources(provider, provider.inventories),
        "traits": _encode_traits(provider.trait_names),
        "parent_provider_uuid": provider.parent_uuid,
        "root_provider_uuid": provider.root_uuid,
    }
    return {name: values[name] for name in names}


@functools.lru_cache(maxsize=MOST_TRAITS)
def _encode_traits(names: tuple[str, ...]) -> Json:
    return fragment(names)

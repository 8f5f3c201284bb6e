"""The fleet on the wire: all providers with everything that belongs to them."""

import dataclasses
import datetime
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple

from placement.microversion import MAXIMUM
from placement.model.allocation import Owner
from placement.model.inventory import FIELDS as INVENTORY_FIELDS
from placement.model.resource_provider import ProviderFilters
from placement.questions.fleet import Member
from placement.schemas import inventory, query, resource_provider
from placement_foundation.http import query_string
from placement_foundation.http.query_string import Pairs, Parser
from placement_foundation.http.schema import (
    INTEGER,
    TEXT,
    TEXT_OR_NULL,
    Json,
    Schema,
    View,
    closed_object,
    describe_fields,
    described,
    extend,
    keyed,
    listed,
    some_of,
)
from placement_foundation.http.version import Version

QUERY = Schema(
    some_of(
        **describe_fields(resource_provider.PARAMETERS, MAXIMUM),
        fields=TEXT,
        repeats={"type": "string", "enum": ["value", "number"]},
    ),
    query_string.FORMATS,
)


def _render_allocations(member: Member) -> Json:
    return {
        each.consumer: {"resources": each.amounts, **_render_owner(each.owner)}
        for each in member.holdings
    }


def _render_owner(owner: Owner | None) -> Json:
    if owner is None:
        return {}
    created = owner.created and f"{owner.created.isoformat(timespec='seconds')}Z"
    return {
        "project_id": owner.project,
        "user_id": owner.user,
        "consumer_type": owner.type,
        "created_at": created,
    }


class Property(NamedTuple):
    """A member of a document: its schema, and its value for a provider.

    If many providers have the same value, ``key`` is equal for those that do.
    """

    schema: Json
    render: Callable[[Member], Json]
    key: Callable[[Member], Hashable] | None = None


_inventory = attrgetter(*INVENTORY_FIELDS)


def _key_of_inventories(member: Member) -> Hashable:
    """Return the inventories without their usages."""
    return tuple(
        (name, _inventory(each)) for name, each in member.provider.inventories.items()
    )


ALLOCATIONS = Property(
    keyed(
        extend(
            closed_object(resources=keyed(INTEGER)),
            properties=dict.fromkeys(
                ("project_id", "user_id", "consumer_type", "created_at"), TEXT_OR_NULL
            ),
        )
    ),
    _render_allocations,
)
# The members of a document for each field, in addition to the UUID and the name.
FIELDS: Mapping[str, Mapping[str, Property]] = {
    "generation": {
        "generation": Property(INTEGER, lambda member: member.provider.generation)
    },
    "parent": {
        "parent_provider_uuid": Property(
            TEXT_OR_NULL, lambda member: member.provider.parent_uuid
        ),
        "root_provider_uuid": Property(TEXT, lambda member: member.provider.root_uuid),
    },
    "inventories": {
        "inventories": Property(
            keyed(inventory.SHOWN),
            lambda member: inventory.render_records(member.provider.inventories),
            _key_of_inventories,
        )
    },
    "usages": {
        "usages": Property(
            keyed(INTEGER),
            lambda member: {
                name: each.used for name, each in member.provider.inventories.items()
            },
        )
    },
    "traits": {
        "traits": Property(
            listed(TEXT),
            lambda member: member.provider.trait_names,
            lambda member: member.provider.trait_names,
        )
    },
    "aggregates": {
        "aggregates": Property(
            listed(TEXT),
            lambda member: sorted(member.provider.aggregates),
            lambda member: member.provider.aggregates,
        )
    },
    "allocations": {"allocations": ALLOCATIONS},
    # Allocations together with their consumers.
    "consumers": {"allocations": ALLOCATIONS},
    "consumer_count": {
        "tree_consumers": Property(INTEGER, lambda member: member.tree_consumers)
    },
}
# How many values of a member have numbers; those that come later have none.
MOST_NUMBERED = 10_000
BY_DEFAULT = frozenset(FIELDS) - {"allocations", "consumers", "consumer_count"}


@dataclasses.dataclass(frozen=True, slots=True)
class FleetQuery:
    """The providers that a query selects, and which of their fields."""

    filters: ProviderFilters
    fields: frozenset[str]
    numbers_repeats: bool = False

    @property
    def wants_counts(self) -> bool:
        """Whether the consumers of trees have to be counted."""
        return "consumer_count" in self.fields

    @property
    def wants_allocations(self) -> bool:
        """Whether allocations have to be read for the fields."""
        return not self.fields.isdisjoint({"allocations", "consumers"})

    @property
    def wants_owners(self) -> bool:
        """Whether the owners of consumers have to be read as well."""
        return "consumers" in self.fields


@dataclasses.dataclass(frozen=True, slots=True)
class Fleet:
    """Providers as of one moment, in UTC, read while they are iterated over.

    The feed of changes goes on from ``cursor``; it is None if there is no feed. If it
    ``numbers_repeats``, a value that was there before is written as its number.
    """

    members: Generator[Member, None, None]
    fields: frozenset[str]
    moment: datetime.datetime
    cursor: str | None = None
    numbers_repeats: bool = False


def parse(pairs: Pairs) -> FleetQuery:
    """Return the parsed query.

    :raises BadRequest: a filter is malformed, or a field or parameter is unknown
    """
    filters = resource_provider.parse_filters(
        pairs, schema=QUERY, grammar=query.grammar_at(MAXIMUM)
    )
    return FleetQuery(
        filters,
        _parse_fields(query_string.last(pairs, "fields")),
        query_string.last(pairs, "repeats") == "number",
    )


PARSER = Parser(parse, QUERY)


def _parse_fields(value: str | None) -> frozenset[str]:
    if value is None:
        return BY_DEFAULT
    names = frozenset(name.strip() for name in value.split(",")) - {""}
    unknown = sorted(names - FIELDS.keys())
    if unknown:
        raise query.unexpected(
            "fields", f"any of {', '.join(FIELDS)}", ", ".join(unknown)
        )
    return names


def describe_provider(version: Version) -> Json:
    """Describe the document of a provider; the query decides which fields it has."""
    parts = {
        name: {"anyOf": [part.schema, INTEGER]} if part.key else part.schema
        for of_document in FIELDS.values()
        for name, part in of_document.items()
    }
    return extend(closed_object(uuid=TEXT, name=TEXT), properties=parts)


def _describe(version: Version) -> Json:
    providers = listed(describe_provider(version))
    document = closed_object(providers=providers, moment=TEXT)
    return extend(document, properties={"cursor": TEXT})


def describe_line(version: Version) -> Json:
    """Describe a line: of a provider, or the last one, which has the cursor."""
    return {"anyOf": [describe_provider(version), closed_object(cursor=TEXT)]}


@described(_describe)
def render(fleet: Fleet, view: View) -> Json:
    """Render all providers in one document, one after the other."""
    moment = fleet.moment.isoformat(timespec="microseconds")
    document: Json = {"providers": _render_members(fleet), "moment": f"{moment}Z"}
    return document | ({"cursor": fleet.cursor} if fleet.cursor else {})


@described(describe_line)
def render_lines(fleet: Fleet, view: View) -> Iterator[Json]:
    """Render a document for each provider, and a last one with the cursor."""
    yield from _render_members(fleet)
    if fleet.cursor:
        yield {"cursor": fleet.cursor}


def _render_members(fleet: Fleet) -> Iterator[Json]:
    fields = [
        (
            name,
            _once(part, part.key)
            if fleet.numbers_repeats and part.key
            else part.render,
        )
        for field, of_document in FIELDS.items()
        if field in fleet.fields
        for name, part in of_document.items()
    ]
    for member in fleet.members:
        yield {
            "uuid": member.provider.uuid,
            "name": member.provider.name,
            **{name: render(member) for name, render in fields},
        }


def _once(
    part: Property, key_of: Callable[[Member], Hashable]
) -> Callable[[Member], Json]:
    """Return a renderer of a value the first time, and of its number afterwards."""
    numbers: dict[Hashable, int] = {}

    def render(member: Member) -> Json:
        key = key_of(member)
        number = numbers.get(key)
        if number is not None:
            return number
        if len(numbers) < MOST_NUMBERED:
            numbers[key] = len(numbers)
        return part.render(member)

    return render

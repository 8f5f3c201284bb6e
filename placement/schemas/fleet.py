"""The fleet on the wire: all providers with everything that belongs to them."""

import dataclasses
import datetime
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from operator import attrgetter

from placement.microversion import MAXIMUM
from placement.model.allocation import Owner
from placement.model.inventory import FIELDS as INVENTORY_FIELDS
from placement.model.resource_provider import ProviderFilters
from placement.questions.fleet import Member
from placement.schemas import inventory, query, resource_provider
from placement.schemas.record import Item, getter, record
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

QUERY = Schema(
    some_of(
        **describe_fields(resource_provider.PARAMETERS, MAXIMUM),
        fields=TEXT,
        repeats={"type": "string", "enum": ["value", "number"]},
    ),
    query_string.FORMATS,
)


def _render_usages(member: Member) -> Json:
    inventories = member.provider.inventories
    return {name: each.used for name, each in inventories.items()}


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


_inventory = attrgetter(*INVENTORY_FIELDS)


def _key_of_inventories(member: Member) -> Hashable:
    """Return the inventories without their usages."""
    return tuple(
        (name, _inventory(each)) for name, each in member.provider.inventories.items()
    )


OF_CONSUMER = extend(
    closed_object(resources=keyed(INTEGER)),
    properties=dict.fromkeys(
        ("project_id", "user_id", "consumer_type", "created_at"), TEXT_OR_NULL
    ),
)
# What a document of a provider may have, in addition to the UUID and the name.
ITEMS = {
    "generation": Item(INTEGER, "provider.generation"),
    "parent_provider_uuid": Item(TEXT_OR_NULL, "provider.parent_uuid"),
    "root_provider_uuid": Item(TEXT, "provider.root_uuid"),
    "inventories": Item(
        keyed(inventory.SHOWN),
        lambda member: inventory.render_records(member.provider.inventories),
    ),
    "usages": Item(keyed(INTEGER), _render_usages),
    "traits": Item(listed(TEXT), "provider.trait_names"),
    "aggregates": Item(listed(TEXT), lambda member: sorted(member.provider.aggregates)),
    "allocations": Item(keyed(OF_CONSUMER), _render_allocations),
    "tree_consumers": Item(INTEGER),
}
# The items of each field.
FIELDS = {
    "generation": ("generation",),
    "parent": ("parent_provider_uuid", "root_provider_uuid"),
    "inventories": ("inventories",),
    "usages": ("usages",),
    "traits": ("traits",),
    "aggregates": ("aggregates",),
    "allocations": ("allocations",),
    # Allocations together with their consumers.
    "consumers": ("allocations",),
    "consumer_count": ("tree_consumers",),
}
# Many providers have the same value of these: what is equal for those that do.
KEYS: Mapping[str, Callable[[Member], Hashable]] = {
    "inventories": _key_of_inventories,
    "traits": attrgetter("provider.trait_names"),
    "aggregates": attrgetter("provider.aggregates"),
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


# The document of a provider; the query decides which items it has.
PROVIDER = extend(
    closed_object(uuid=TEXT, name=TEXT),
    properties={
        name: {"anyOf": [item.kind, INTEGER]} if name in KEYS else item.kind
        for name, item in ITEMS.items()
    },
)


@described(
    extend(
        closed_object(providers=listed(PROVIDER), moment=TEXT),
        properties={"cursor": TEXT},
    )
)
def render(fleet: Fleet, view: View) -> Json:
    """Render all providers in one document, one after the other."""
    moment = fleet.moment.isoformat(timespec="microseconds")
    document: Json = {"providers": _render_members(fleet, view), "moment": f"{moment}Z"}
    return document | ({"cursor": fleet.cursor} if fleet.cursor else {})


@described({"anyOf": [PROVIDER, closed_object(cursor=TEXT)]})
def render_lines(fleet: Fleet, view: View) -> Iterator[Json]:
    """Render a document for each provider, and a last one with the cursor."""
    yield from _render_members(fleet, view)
    if fleet.cursor:
        yield {"cursor": fleet.cursor}


def _render_members(fleet: Fleet, view: View) -> Iterator[Json]:
    fields = [names for field, names in FIELDS.items() if field in fleet.fields]
    items = {name: ITEMS[name] for names in fields for name in names}
    if fleet.numbers_repeats:
        items |= {name: _once(name, key) for name, key in KEYS.items() if name in items}
    provider = record(
        uuid=Item(TEXT, "provider.uuid"), name=Item(TEXT, "provider.name"), **items
    )
    for member in fleet.members:
        yield provider(member, view)


def _once(name: str, key_of: Callable[[Member], Hashable]) -> Item:
    """Return an item with its value the first time, and with its number afterwards."""
    numbers: dict[Hashable, int] = {}
    value_of = getter(name, ITEMS[name])

    def number_or_value(member: Member) -> Json:
        key = key_of(member)
        number = numbers.get(key)
        if number is not None:
            return number
        if len(numbers) < MOST_NUMBERED:
            numbers[key] = len(numbers)
        return value_of(member)

    return Item({}, number_or_value)

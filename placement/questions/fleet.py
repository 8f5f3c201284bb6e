"""The fleet: all providers and what belongs to them, read in one pass, tree by tree."""

import contextlib
import dataclasses
import datetime
import functools
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

import sqlalchemy as sa

from placement.db import models
from placement.forest import reading, vocabulary
from placement.forest.vocabulary import Vocabulary
from placement.model.inventory import FIELDS, Inventory
from placement.model.resource_provider import ProviderFilters
from placement.model.tree import walk
from placement.objects import inventory
from placement.questions import providers
from placement_foundation.database import storage

# How many rows are fetched at a time.
BATCH = 2_000
# How many sets of traits are kept in their decoded form.
MOST_REMEMBERED = 1_000

# The kinds of rows, in the order in which the rows of a provider come.
PROVIDER, INVENTORY, TRAITS, AGGREGATES, ALLOCATION = range(5)

# The columns of a row, whatever its kind: the ids of root and provider, the kind, two
# texts, and numbers. Only those that its kind has are not null.
COLUMNS = ("root_id", "provider_id", "kind", "text", "name", "number")
AMOUNTS = (*FIELDS, "used")
# The columns that an allocation has for the ids of its project, user and type.
OWNER = FIELDS[:3]

Row: TypeAlias = Any


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What to read in addition to the providers themselves."""

    inventories: bool = True
    traits: bool = True
    aggregates: bool = True
    allocations: bool = True
    owners: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Owner:
    """The project, user and type of a consumer, and when it was created, in UTC."""

    project: str
    user: str
    type: str | None
    created: datetime.datetime | None


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """A provider with everything that belongs to it.

    ``inventories`` and ``used`` are keyed by resource class, ``allocations`` by UUID of
    the consumer and then by resource class, ``owners`` by UUID of the consumer.
    """

    uuid: str
    name: str
    generation: int
    parent_uuid: str | None
    root_uuid: str
    inventories: Mapping[str, Inventory]
    used: Mapping[str, int]
    traits: tuple[str, ...]
    aggregates: tuple[str, ...]
    allocations: Mapping[str, Mapping[str, int]]
    owners: Mapping[str, Owner]


def read(
    connection: sa.Connection, filters: ProviderFilters, parts: Parts
) -> Iterator[Member]:
    """Return the providers that pass all filters, each before those below it.

    They are read while they are iterated over, a tree at a time, with one statement in
    addition to those for the filters and the names of owners. It is executed here.

    :raises BadRequest: a filter names a trait or resource class that does not exist
    """
    words = vocabulary.load(connection)
    wanted = None
    if filters != ProviderFilters():
        found = providers.list_by_filters(connection, filters)
        wanted = frozenset(provider.id for provider in found)
    decoder = _Decoder(words, _load_owners(connection) if parts.owners else None)
    return _by_tree(_rows(connection, parts, wanted), decoder, wanted)


def _by_tree(
    rows: sa.CursorResult[Any], decoder: "_Decoder", wanted: Collection[int] | None
) -> Iterator[Member]:
    with contextlib.closing(rows):
        for _, of_tree in itertools.groupby(rows, itemgetter(0)):
            yield from _members(of_tree, decoder, wanted)


@dataclasses.dataclass(frozen=True, slots=True)
class _OwnerNames:
    """The names of projects, users and types, by their ids."""

    projects: Mapping[int, str]
    users: Mapping[int, str]
    types: Mapping[int | None, str]


def _load_owners(connection: sa.Connection) -> _OwnerNames:
    def load(name: Any) -> dict[Any, str]:
        key = name.class_.id
        rows = connection.execute(sa.select(key, name).order_by(key))
        return {row[0]: str(row[1]) for row in rows}

    return _OwnerNames(
        load(models.Project.external_id),
        load(models.User.external_id),
        load(models.ConsumerType.name),
    )


class _Decoder:
    """Turns the ids in rows into names. Hosts of a kind have the same traits."""

    def __init__(self, words: Vocabulary, owners: _OwnerNames | None) -> None:
        self.classes = words.classes
        self._words = words
        self._owners = owners
        self.traits = functools.lru_cache(MOST_REMEMBERED)(self._decode)

    def _decode(self, joined: str) -> tuple[str, ...]:
        return self._words.in_order(map(int, joined.split(reading.SEPARATOR)))

    def owner(self, ids: Sequence[int | None], created: str | None) -> Owner | None:
        """Return the owner of a consumer; None if not asked for, or not recorded."""
        project, user, kind = ids
        if self._owners is None or project is None or user is None:
            return None
        return Owner(
            self._owners.projects.get(project, ""),
            self._owners.users.get(user, ""),
            self._owners.types.get(kind),
            datetime.datetime.fromisoformat(created) if created else None,
        )


def _rows(
    connection: sa.Connection, parts: Parts, wanted: Collection[int] | None
) -> sa.CursorResult[Any]:
    """Read the rows of whole trees, one tree after the other.

    All kinds come from one statement: MySQL keeps only one open on a connection, and
    the result of a second one would have to be held in memory.
    """
    kinds = [
        # The first one gives the columns their types.
        (True, _inventories()),
        (True, _providers()),
        (parts.traits, _traits()),
        (parts.aggregates, _aggregates()),
        (parts.allocations, _owned() if parts.owners else _allocations()),
    ]
    if not parts.inventories:
        kinds[0] = (True, _inventories().where(sa.false()))
    provider = models.ResourceProvider
    conditions = [provider.root_provider_id.is_not(None), *_in_trees(wanted)]
    everything = sa.union_all(
        *(query.where(*conditions) for is_read, query in kinds if is_read)
    )
    ordered = everything.order_by("root_id", "provider_id", "kind", "text", "number")
    return connection.execute(ordered, execution_options={"yield_per": BATCH})


def _in_trees(wanted: Collection[int] | None) -> list[sa.ColumnElement[bool]]:
    """Return the condition that a tree has a wanted member.

    There is no condition if many are wanted: other trees are left out later.
    """
    if wanted is None or len(wanted) > storage.CHUNK:
        return []
    provider = models.ResourceProvider
    member = sa.alias(models.ResourceProvider.__table__)
    listed: sa.BindParameter[Any] = sa.bindparam(
        None, sorted(wanted), expanding=True, literal_execute=True
    )
    roots = sa.select(member.c.root_provider_id).where(member.c.id.in_(listed))
    return [provider.root_provider_id.in_(roots)]


def _select(kind: int, **columns: Any) -> sa.Select[Any]:
    """Select rows of a kind, which have some of the columns."""
    provider = models.ResourceProvider
    columns |= {
        "root_id": provider.root_provider_id,
        "provider_id": provider.id,
        "kind": sa.literal_column(str(kind)),
    }
    return sa.select(
        *(columns.get(name, sa.null()).label(name) for name in (*COLUMNS, *AMOUNTS))
    )


def _providers() -> sa.Select[Any]:
    row = models.ResourceProvider
    return _select(
        PROVIDER,
        text=row.uuid,
        name=row.name,
        number=row.parent_provider_id,
        used=row.generation,
    )


def _inventories() -> sa.Select[Any]:
    row = models.Inventory
    return (
        _select(
            INVENTORY,
            text=sa.cast(sa.null(), sa.String(36)),
            name=sa.cast(sa.null(), sa.String(200)),
            number=row.resource_class_id,
            used=inventory.USED,
            **{name: getattr(row, name) for name in FIELDS},
        )
        .select_from(row)
        .join(
            models.ResourceProvider,
            models.ResourceProvider.id == row.resource_provider_id,
        )
    )


def _traits() -> sa.Select[Any]:
    row = models.ResourceProviderTrait
    return _grouped(TRAITS, row, sa.cast(row.trait_id, sa.String(20)))


def _aggregates() -> sa.Select[Any]:
    row = models.ResourceProviderAggregate
    return (
        _grouped(AGGREGATES, row, models.Aggregate.uuid)
        .join(models.Aggregate, models.Aggregate.id == row.aggregate_id)
        .where(models.Aggregate.uuid.is_not(None))
    )


def _grouped(kind: int, association: Any, text: Any) -> sa.Select[Any]:
    """Select one row for all that a provider is associated with, joined into a text."""
    provider = models.ResourceProvider
    joined = sa.func.aggregate_strings(text, reading.SEPARATOR)
    return (
        _select(kind, text=joined)
        .select_from(association)
        .join(provider, provider.id == association.resource_provider_id)
        .group_by(provider.id, provider.root_provider_id)
    )


def _allocations(**columns: Any) -> sa.Select[Any]:
    row = models.Allocation
    return (
        _select(
            ALLOCATION,
            text=row.consumer_id,
            number=row.resource_class_id,
            used=row.used,
            **columns,
        )
        .select_from(row)
        .join(
            models.ResourceProvider,
            models.ResourceProvider.id == row.resource_provider_id,
        )
    )


def _owned() -> sa.Select[Any]:
    """Select allocations with their owners, in columns that are otherwise unused."""
    consumer = models.Consumer
    owner = (consumer.project_id, consumer.user_id, consumer.consumer_type_id)
    return _allocations(
        name=sa.cast(consumer.created_at, sa.String(200)),
        **dict(zip(OWNER, owner, strict=True)),
    ).outerjoin(consumer, consumer.uuid == models.Allocation.consumer_id)


def _members(
    rows: Iterable[Row], decoder: _Decoder, wanted: Collection[int] | None
) -> Iterator[Member]:
    """Yield the wanted members of a tree, each before those below it."""
    by_provider = {
        provider_id: list(of_provider)
        for provider_id, of_provider in itertools.groupby(rows, itemgetter(1))
    }
    heads = {key: of_provider[0] for key, of_provider in by_provider.items()}
    parents = {key: head.number for key, head in heads.items()}
    for tree in walk(parents):
        root_uuid = heads[tree[0][0]].text
        for provider_id, _ in tree:
            if wanted is not None and provider_id not in wanted:
                continue
            parent_id = parents[provider_id]
            yield _member(
                by_provider[provider_id],
                root_uuid,
                None if parent_id is None else heads[parent_id].text,
                decoder,
            )


def _member(
    rows: list[Row], root_uuid: str, parent_uuid: str | None, decoder: _Decoder
) -> Member:
    inventories: dict[str, Inventory] = {}
    used: dict[str, int] = {}
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    allocations: dict[str, dict[str, int]] = {}
    owners: dict[str, Owner] = {}
    for _, _, kind, text, created, class_id, *fields, amount in rows[1:]:
        if kind == TRAITS:
            traits = decoder.traits(text)
        elif kind == AGGREGATES:
            aggregates = tuple(sorted(text.split(reading.SEPARATOR)))
        elif class_id not in decoder.classes:
            continue
        elif kind == INVENTORY:
            name = decoder.classes[class_id]
            inventories[name] = Inventory(*fields)
            # Sums are decimal numbers on some databases.
            used[name] = int(amount)
        else:
            name = decoder.classes[class_id]
            of_consumer = allocations.setdefault(text, {})
            of_consumer[name] = of_consumer.get(name, 0) + int(amount)
            owner = decoder.owner(fields[: len(OWNER)], created)
            if owner:
                owners[text] = owner
    head = rows[0]
    return Member(
        head.text,
        head.name,
        int(head.used),
        parent_uuid,
        root_uuid,
        inventories,
        used,
        traits,
        aggregates,
        allocations,
        owners,
    )

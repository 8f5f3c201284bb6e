"""Reading the trees of a search, in a fixed number of queries."""

import contextlib
import datetime
import functools
import operator
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, NamedTuple, TypeAlias

import sqlalchemy as sa
from sqlalchemy import orm

from placement.db import models
from placement.forest.vocabulary import Vocabulary
from placement.model.inventory import FIELDS, InventoryUsage
from placement.model.trait import CUSTOM_PREFIX
from placement.model.tree import Provider, Tree, walk
from placement.objects import exact_match
from placement.objects.resource_provider import stored_generation
from placement.objects.usage import USED

# Ids, or UUIDs, that the database has joined into one string.
SEPARATOR = ","
# If there are more trees to load, the queries do not list them, but load all trees.
MOST_LISTED_ROOTS = 500
# How many rows of all are in memory at a time.
MOST_ROWS = 5_000

# Names of traits, or UUIDs of aggregates: in an order, and as a set.
_Names: TypeAlias = tuple[tuple[str, ...], frozenset[str]]
_NO_NAMES: _Names = ((), frozenset())
# Inventories by resource class, and the times of their changes in the same order.
_Inventories: TypeAlias = tuple[dict[str, InventoryUsage], tuple[Any, ...]]
_NO_INVENTORIES: _Inventories = ({}, ())


class _Row(NamedTuple):
    """A provider as it is stored."""

    id: int
    uuid: str
    parent_id: int | None
    root_id: int
    name: str
    generation: int
    modified: datetime.datetime | None


_provider, _inventory = models.ResourceProvider, models.Inventory
_trait, _aggregate = models.ResourceProviderTrait, models.ResourceProviderAggregate
_allocation = models.Allocation
# The queries for all providers.
_PROVIDERS = (
    sa.select(
        _provider.id,
        _provider.uuid,
        _provider.parent_provider_id,
        _provider.root_provider_id,
        _provider.name,
        stored_generation(_provider).label("generation"),
        sa.func.coalesce(_provider.updated_at, _provider.created_at),
    )
    .where(_provider.root_provider_id.is_not(None))
    .order_by(_provider.id)
)
_INVENTORY_COLUMNS = (
    _inventory.resource_class_id,
    sa.func.coalesce(_inventory.updated_at, _inventory.created_at),
    *[getattr(_inventory, name) for name in FIELDS],
)
_KEY = (_allocation.resource_provider_id, _allocation.resource_class_id)
# Added up all at once, and apart from the inventories: MariaDB with old statistics, as
# after an import, would add up those of a class again for each inventory of it.
_USAGES = sa.select(*_KEY, sa.func.sum(_allocation.used)).group_by(*_KEY)
_INVENTORIES = sa.select(_inventory.resource_provider_id, *_INVENTORY_COLUMNS).order_by(
    _inventory.resource_provider_id, _inventory.resource_class_id
)
# The traits and aggregates of each provider, joined into one string: with one row for
# each association there would be many times as many rows.
# Both are part of the text of a statement: a parameter would be put there each time.
_comma: Any = sa.literal_column(f"'{SEPARATOR}'")
_space: Any = sa.literal_column("' '")
_TRAITS = sa.select(
    sa.func.aggregate_strings(sa.cast(_trait.trait_id, sa.String(20)), _comma)
)
_NAMED_TRAITS = (
    sa.select(
        sa.func.aggregate_strings(
            sa.cast(models.Trait.id, sa.String(20)) + _space + models.Trait.name, _comma
        )
    )
    .select_from(_trait)
    .join(models.Trait, models.Trait.id == _trait.trait_id)
)
_AGGREGATES = (
    sa.select(
        sa.func.aggregate_strings(
            sa.cast(models.Aggregate.id, sa.String(20))
            + _space
            + models.Aggregate.uuid,
            _comma,
        )
    )
    .select_from(_aggregate)
    .join(models.Aggregate, models.Aggregate.id == _aggregate.aggregate_id)
    .where(models.Aggregate.uuid.is_not(None))
)


def _of_each(
    joined: sa.Select[Any], provider_id: orm.InstrumentedAttribute[int]
) -> sa.Select[Any]:
    """Select the id and the joined string of each provider that has one."""
    columns = joined.with_only_columns(provider_id, *joined.selected_columns)
    return columns.group_by(provider_id).order_by(provider_id)


def _of_one(
    joined: sa.Select[Any], provider_id: orm.InstrumentedAttribute[int]
) -> sa.ScalarSelect[Any]:
    """Select the joined string of the provider in the outer query."""
    return joined.where(provider_id == _provider.id).scalar_subquery()


_TRAITS_OF_EACH = _of_each(_TRAITS, _trait.resource_provider_id)
_AGGREGATES_OF_EACH = _of_each(_AGGREGATES, _aggregate.resource_provider_id)


def _together(wanted: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Select all about few providers: a row for each inventory, or one without.

    That is faster than several queries. It has the names of traits and classes as well,
    and so needs no vocabulary. The hints keep the database from joining the
    strings of a provider again for each of its rows; MariaDB needs none. The rows are
    in no order: to sort so few is faster in Python.
    """
    few = (
        _PROVIDERS.add_columns(
            _of_one(_NAMED_TRAITS, _trait.resource_provider_id).label("traits"),
            _of_one(_AGGREGATES, _aggregate.resource_provider_id).label("aggregates"),
        )
        .where(wanted)
        .order_by(None)
        .suffix_with("LIMIT -1", dialect="sqlite")
        .cte("few")
        .prefix_with("MATERIALIZED", dialect="postgresql")
    )
    return (
        sa.select(*few.c, *_INVENTORY_COLUMNS, USED, models.ResourceClass.name)
        .outerjoin_from(few, _inventory, _inventory.resource_provider_id == few.c.id)
        .outerjoin(
            models.ResourceClass,
            models.ResourceClass.id == _inventory.resource_class_id,
        )
    )


def _with_member(key: str) -> sa.Select[Any]:
    """Select all about the trees of the providers with a value in a column."""
    other = orm.aliased(_provider)
    named = getattr(other, key) == sa.bindparam("wanted")
    return _together(
        _provider.root_provider_id.in_(sa.select(other.root_provider_id).where(named))
    )


_OF_SOME = _together(
    _provider.root_provider_id.in_(sa.bindparam("wanted", expanding=True))
)
_AROUND = {key: _with_member(key) for key in ("uuid", "name")}
_WIDTH = len(_Row._fields)
# How many columns a row of an inventory has before its fields.
_BEFORE_FIELDS = 3
# How many joined strings are remembered, with the values that are made of them: a cloud
# has few different ones, and a change of a provider seldom changes them.
MOST_STRINGS = 1024


class _Found(NamedTuple):
    """Rows of providers, and of their inventories, traits and aggregates.

    Each begins with the id of the provider. ``classes`` has the names of the resource
    classes in them, by id, and ``parse_traits`` parses the joined traits.
    """

    classes: Mapping[int, str]
    parse_traits: Callable[[str], _Names]
    providers: Mapping[int, _Row]
    traits: Iterable[Sequence[Any]]
    aggregates: Iterable[Sequence[Any]]
    inventories: Iterable[Sequence[Any]]


def load(
    connection: sa.Connection,
    vocabulary: Vocabulary,
    root_ids: Collection[int] | None = None,
) -> dict[int, Tree]:
    """Return some trees, or all, keyed by the ids of their roots, in this order.

    :param root_ids: the ids of the roots; None means all
    """
    if root_ids is not None and not root_ids:
        return {}
    # Listing too many would take longer than loading all.
    if root_ids and len(root_ids) <= MOST_LISTED_ROOTS:
        return _trees_of(_read_some(connection, _OF_SOME, sorted(root_ids)))
    with contextlib.ExitStack() as opened:
        trees = _trees_of(_read_all(connection, vocabulary, opened))
    if root_ids is None:
        return trees
    return {key: tree for key, tree in trees.items() if key in root_ids}


def load_around(connection: sa.Connection, named: Mapping[str, str]) -> Tree | None:
    """Return the tree of a provider, by one query; None if there is no such provider.

    :param named: the ``uuid`` or the ``name`` of the provider
    """
    [(key, wanted)] = named.items()
    if not exact_match.is_searchable(wanted):
        return None
    trees = _trees_of(_read_some(connection, _AROUND[key], wanted))
    # The database may consider other strings equal to this one.
    for tree in trees.values():
        if any(getattr(member, key) == wanted for member in tree.members):
            return tree
    return None


def _read_all(
    connection: sa.Connection, vocabulary: Vocabulary, opened: contextlib.ExitStack
) -> _Found:
    """Read the rows of all providers, some at a time.

    :param opened: closes results that are not read to the end. Until then, a driver may
        not be able to end the transaction.
    """

    def stream(query: sa.Select[*tuple[Any, ...]]) -> Iterator[Sequence[Any]]:
        # The query is sent when the first row is read. All are to be read before the
        # connection is used again: MariaDB would drop the rest of them.
        options = {"yield_per": MOST_ROWS}
        rows = connection.execute(query, execution_options=options)
        yield from opened.enter_context(rows)

    @functools.cache
    def parse_traits(joined: str) -> _Names:
        names = vocabulary.in_order(map(int, joined.split(SEPARATOR)))
        return names, frozenset(names)

    used = {(owner, kind): amount for owner, kind, amount in stream(_USAGES)}
    return _Found(
        vocabulary.classes,
        parse_traits,
        {row[0]: _Row._make(row) for row in stream(_PROVIDERS)},
        stream(_TRAITS_OF_EACH),
        stream(_AGGREGATES_OF_EACH),
        ((*row, used.get((row[0], row[1]), 0)) for row in stream(_INVENTORIES)),
    )


def _read_some(
    connection: sa.Connection, query: sa.Select[Any], wanted: object
) -> _Found:
    """Read the rows of the providers of some trees."""
    # By provider and resource class, which is None in the only row of a provider that
    # has no inventory.
    rows = sorted(
        connection.execute(query, {"wanted": wanted}).all(),
        key=operator.itemgetter(0, _WIDTH + 2),
    )
    having = [row for row in rows if row[-1] is not None]
    return _Found(
        {row[_WIDTH + 2]: row[-1] for row in having},
        _parse_names,
        {row[0]: _Row._make(row[:_WIDTH]) for row in rows},
        [(row[0], row[_WIDTH]) for row in rows],
        [(row[0], row[_WIDTH + 1]) for row in rows],
        [(row[0], *row[_WIDTH + 2 : -1]) for row in having],
    )


def _parents_of(rows: Mapping[int, _Row]) -> dict[int, int | None]:
    """Return the parent of each provider, by id.

    Where the parent is in another tree, as "db online_data_migrations" may leave it,
    the root counts. Otherwise a provider's place would depend on which trees are read.
    """
    parents = {}
    for key, row in rows.items():
        # A provider whose root is in another tree, or has no root, is in no tree.
        root = rows.get(row.root_id)
        parents[key] = row.parent_id
        if row.parent_id is not None and root and root.root_id == row.root_id:
            parent = rows.get(row.parent_id)
            if row is root:
                parents[key] = None
            elif parent is None or parent.root_id != row.root_id:
                parents[key] = row.root_id
    return parents


def _trees_of(found: _Found) -> dict[int, Tree]:
    """Return the trees that rows are about, by the ids of their roots."""
    # Providers without a root are not part of the API.
    stored = found.providers
    rows = {key: row for key, row in stored.items() if row.root_id in stored}
    # Many providers have equal values, and share them to save memory.
    traits = _parsed(found.traits, found.parse_traits)
    aggregates = _parsed(found.aggregates, _parse_names)
    held = _inventories_of(found)
    trees = {}
    parents = _parents_of(rows)
    for members in walk(parents):
        root = rows[members[0][0]]
        providers = []
        for position, (provider_id, end) in enumerate(members):
            row = rows[provider_id]
            parent_id = parents[provider_id]
            names, having = traits.get(provider_id, _NO_NAMES)
            uuids, within = aggregates.get(provider_id, _NO_NAMES)
            inventories, times = held.get(provider_id, _NO_INVENTORIES)
            provider = Provider(
                row.uuid,
                None if parent_id is None else rows[parent_id].uuid,
                root.uuid,
                inventories,
                names,
                having,
                within,
                position,
                end,
                row.id,
                row.name,
                row.generation,
                row.modified,
                times,
                uuids,
            )
            providers.append(provider)
        trees[root.id] = Tree(tuple(providers))
    return trees


def _inventories_of(found: _Found) -> dict[int, _Inventories]:
    """Return the inventories, and what is used of them, by id of the provider."""
    classes = found.classes
    usages: dict[tuple[Any, ...], InventoryUsage] = {}
    inventories: dict[int, dict[str, InventoryUsage]] = {}
    times: dict[int, list[Any]] = {}
    for row in found.inventories:
        provider_id, class_id, modified = row[:_BEFORE_FIELDS]
        if class_id not in classes:
            continue
        values = tuple(row[_BEFORE_FIELDS:])
        inventory = usages.get(values)
        if inventory is None:
            # Sums are decimal numbers on some databases.
            plain = (*values[:-1], int(values[-1]))
            inventory = usages[values] = InventoryUsage(*plain)
        inventories.setdefault(provider_id, {})[classes[class_id]] = inventory
        times.setdefault(provider_id, []).append(modified)
    shared: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    return {
        key: (inventories[key], shared.setdefault(tuple(each), tuple(each)))
        for key, each in times.items()
    }


def _parsed(
    texts: Iterable[Sequence[Any]], parse: Callable[[str], _Names]
) -> dict[int, _Names]:
    """Return the names in joined texts, by the ids of the providers that have one."""
    return {key: parse(text) for key, text in texts if text}


@functools.lru_cache(MOST_STRINGS)
def _parse_names(joined: str) -> _Names:
    """Return names, each of which is listed with its id, the oldest first.

    Custom traits come after standard ones.
    """
    listed = [each.partition(" ") for each in joined.split(SEPARATOR)]
    listed.sort(key=lambda each: (each[2].startswith(CUSTOM_PREFIX), int(each[0])))
    names = tuple([name for _, _, name in listed])
    return names, frozenset(names)

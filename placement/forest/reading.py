"""All that one search needs, in a fixed number of queries."""

import datetime
import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import sqlalchemy as sa
from sqlalchemy import orm

from placement.db import models
from placement.forest.vocabulary import Vocabulary
from placement.model.inventory import FIELDS, InventoryUsage
from placement.model.tree import Provider, Tree, walk
from placement.objects import inventory

# Ids, or UUIDs, that the database has joined into one text.
SEPARATOR = ","
# If there are more trees to load, they are not listed in a query: all are loaded.
MOST_LISTED_ROOTS = 500

# The names of traits, in the order of the vocabulary and as a set.
_Traits: TypeAlias = tuple[tuple[str, ...], frozenset[str]]
_NO_TRAITS: _Traits = ((), frozenset())
_NO_AGGREGATES: frozenset[str] = frozenset()

# Finds the former state of a provider, by UUID; None if it did not exist.
Former: TypeAlias = Callable[[str], Provider | None]


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
# The queries for all providers.
_PROVIDERS = (
    sa.select(
        _provider.id,
        _provider.uuid,
        _provider.parent_provider_id,
        _provider.root_provider_id,
        _provider.name,
        _provider.generation,
        sa.func.coalesce(_provider.updated_at, _provider.created_at),
    )
    .where(_provider.root_provider_id.is_not(None))
    .order_by(_provider.id)
)
_STOCKS = sa.select(
    _inventory.resource_provider_id,
    _inventory.resource_class_id,
    *[getattr(_inventory, name) for name in FIELDS],
    inventory.USED,
).order_by(_inventory.resource_provider_id, _inventory.resource_class_id)
# What providers are associated with, joined into one text for each: with one row for
# each association there would be many times as many rows.
_TRAITS = sa.select(
    sa.func.aggregate_strings(sa.cast(_trait.trait_id, sa.String(20)), SEPARATOR)
)
_AGGREGATES = (
    sa.select(sa.func.aggregate_strings(models.Aggregate.uuid, SEPARATOR))
    .select_from(_aggregate)
    .join(models.Aggregate, models.Aggregate.id == _aggregate.aggregate_id)
    .where(models.Aggregate.uuid.is_not(None))
)


def _of_each(
    joined: sa.Select[Any], provider_id: orm.InstrumentedAttribute[int]
) -> sa.Select[Any]:
    """Select the id and the joined text of each provider that has one."""
    columns = joined.with_only_columns(provider_id, *joined.selected_columns)
    return columns.group_by(provider_id).order_by(provider_id)


def _of_one(
    joined: sa.Select[Any], provider_id: orm.InstrumentedAttribute[int]
) -> sa.ScalarSelect[Any]:
    """Select the joined text of the provider in the outer query."""
    return joined.where(provider_id == _provider.id).scalar_subquery()


class _Queries(NamedTuple):
    """The queries for all providers, or for those of some trees.

    ``associations`` are those for traits and for aggregates. For few providers, it is
    faster to read both with the providers: then there are none.
    """

    providers: sa.Executable
    stocks: sa.Executable
    associations: tuple[sa.Executable, sa.Executable] | None = None


_OF_ALL = _Queries(
    _PROVIDERS,
    _STOCKS,
    (
        _of_each(_TRAITS, _trait.resource_provider_id),
        _of_each(_AGGREGATES, _aggregate.resource_provider_id),
    ),
)
_listed = _provider.root_provider_id.in_(sa.bindparam("root_ids", expanding=True))
_OF_SOME = _Queries(
    _PROVIDERS.add_columns(
        _of_one(_TRAITS, _trait.resource_provider_id).label("traits"),
        _of_one(_AGGREGATES, _aggregate.resource_provider_id).label("aggregates"),
    ).where(_listed),
    _STOCKS.where(
        _inventory.resource_provider_id.in_(sa.select(_provider.id).where(_listed))
    ),
)


def load(
    connection: sa.Connection,
    vocabulary: Vocabulary,
    root_ids: Collection[int] | None = None,
    former: Former = lambda uuid: None,
) -> dict[int, Tree]:
    """Return some trees, or all, keyed by the ids of their roots, in this order.

    :param root_ids: the ids of the roots; None means all
    :param former: unchanged values are taken from there, to share their memory
    """
    if root_ids is not None and not root_ids:
        return {}
    # Listing too many would take longer than loading all.
    listed = root_ids if root_ids and len(root_ids) <= MOST_LISTED_ROOTS else None
    trees = _Loader(connection, vocabulary, listed, former).trees()
    if root_ids is None or listed is not None:
        return trees
    return {key: tree for key, tree in trees.items() if key in root_ids}


class _Loader:
    """Reads the rows of some trees, and makes values of them."""

    def __init__(
        self,
        connection: sa.Connection,
        vocabulary: Vocabulary,
        root_ids: Collection[int] | None,
        former: Former,
    ) -> None:
        self._connection = connection
        self._vocabulary = vocabulary
        self._queries = _OF_ALL if root_ids is None else _OF_SOME
        self._parameters = {} if root_ids is None else {"root_ids": sorted(root_ids)}
        self._former = former

    def trees(self) -> dict[int, Tree]:
        """Return the trees by the ids of their roots."""
        rows, traits, aggregates = self._load_providers()
        stocks = self._load_stocks()
        trees = {}
        for members in walk({key: row.parent_id for key, row in rows.items()}):
            root = rows[members[0][0]]
            root_uuid = root.uuid
            providers = []
            for position, (provider_id, end) in enumerate(members):
                row = rows[provider_id]
                parent_uuid = (
                    None if row.parent_id is None else rows[row.parent_id].uuid
                )
                names, having = traits.get(provider_id, _NO_TRAITS)
                provider = Provider(
                    row.uuid,
                    parent_uuid,
                    root_uuid,
                    stocks.get(provider_id, {}),
                    names,
                    having,
                    aggregates.get(provider_id, _NO_AGGREGATES),
                    position,
                    end,
                    row.id,
                    row.name,
                    row.generation,
                    row.modified,
                )
                providers.append(_like(provider, self._former(row.uuid)))
            trees[root.id] = tree_of(providers)
        return trees

    def _load_providers(
        self,
    ) -> tuple[dict[int, _Row], dict[int, _Traits], dict[int, frozenset[str]]]:
        """Return the providers, their traits and their aggregates, each by id."""
        found = self._rows(self._queries.providers)
        rows = {row[0]: _Row._make(row[: len(_Row._fields)]) for row in found}
        traits: Iterable[Any]
        aggregates: Iterable[Any]
        if self._queries.associations:
            traits, aggregates = map(self._rows, self._queries.associations)
        else:
            traits = ((row.id, row.traits) for row in found)
            aggregates = ((row.id, row.aggregates) for row in found)
        # Many providers have the same, and share the values to save memory.
        parse_traits = functools.cache(self._parse_traits)
        parse_aggregates = functools.cache(_parse_aggregates)
        return (
            # Providers without a root are not part of the API.
            {key: row for key, row in rows.items() if row.root_id in rows},
            {key: parse_traits(text) for key, text in traits if text},
            {key: parse_aggregates(text) for key, text in aggregates if text},
        )

    def _load_stocks(self) -> dict[int, dict[str, InventoryUsage]]:
        """Return the inventories, and what is used of them, by id of the provider."""
        classes = self._vocabulary.classes
        known: dict[tuple[Any, ...], InventoryUsage] = {}
        stocks: dict[int, dict[str, InventoryUsage]] = {}
        for provider_id, class_id, *fields, used in self._rows(self._queries.stocks):
            # Sums are decimal numbers on some databases.
            values = (*fields, int(used))
            stock = known.get(values)
            if stock is None:
                stock = known[values] = InventoryUsage(*values)
            if class_id in classes:
                stocks.setdefault(provider_id, {})[classes[class_id]] = stock
        return stocks

    def _parse_traits(self, joined: str) -> _Traits:
        names = self._vocabulary.in_order(map(int, joined.split(SEPARATOR)))
        return names, frozenset(names)

    def _rows(self, query: sa.Executable) -> Sequence[Any]:
        return self._connection.execute(query, self._parameters).all()


def _parse_aggregates(joined: str) -> frozenset[str]:
    return frozenset(joined.split(SEPARATOR))


def _like(provider: Provider, former: Provider | None) -> Provider:
    """Return a provider that shares unchanged values with its former state."""
    if former is None:
        return provider
    same_traits = provider.trait_names == former.trait_names
    return Provider(
        former.uuid,
        _same(former.parent_uuid, provider.parent_uuid),
        _same(former.root_uuid, provider.root_uuid),
        {
            name: _same(former.stocks.get(name), stock)
            for name, stock in provider.stocks.items()
        },
        former.trait_names if same_traits else provider.trait_names,
        former.traits if same_traits else provider.traits,
        _same(former.aggregates, provider.aggregates),
        provider.position,
        provider.end,
        provider.id,
        _same(former.name, provider.name),
        provider.generation,
        provider.modified,
    )


def _same(former: Any, value: Any) -> Any:
    return former if former == value else value


def tree_of(members: Sequence[Provider]) -> Tree:
    """Return the tree of some providers, the root first."""
    if len(members) == 1:
        return Tree((members[0],), members[0].aggregates)
    aggregates = frozenset().union(*(member.aggregates for member in members))
    return Tree(tuple(members), aggregates)

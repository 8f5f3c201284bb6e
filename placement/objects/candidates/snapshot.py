"""All that one search needs, in a fixed number of queries."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.orm import Session

from placement.db import models
from placement.objects import inventory
from placement.objects.candidates.vocabulary import Vocabulary
from placement.search import model
from placement.search.model import Provider, Snapshot, Stock, Tree

# Ids, or UUIDs, that the database has joined into one text.
SEPARATOR = ","
# More trees than that are not listed in a query: all are loaded.
MOST_LISTED_ROOTS = 500
# What MySQL may join into one text, in bytes; its default cuts off after 1024. This is
# the most that MariaDB takes: a strict session refuses more.
JOINED_LENGTH = 2**30

# The names of traits, in the order of the vocabulary and as a set.
_Traits: TypeAlias = tuple[tuple[str, ...], frozenset[str]]


def load(
    session: Session,
    vocabulary: Vocabulary,
    root_ids: Collection[int] | None = None,
) -> Snapshot:
    """Return some trees, or all.

    :param root_ids: the ids of the roots; None means all
    """
    if root_ids is not None and not root_ids:
        return model.snapshot_of(())
    loader = _Loader(session, vocabulary, root_ids)
    return model.snapshot_of(loader.trees())


def in_trees(root_ids: Collection[int] | None) -> list[sa.ColumnElement[bool]]:
    """Return the condition that a row of a provider is in some trees, more or less.

    There is none if there are many trees: that would take longer than loading all.
    """
    if not _are_listed(root_ids):
        return []
    listed: sa.BindParameter[Any] = sa.bindparam(
        "root_ids", sorted(root_ids or ()), expanding=True, literal_execute=True
    )
    return [models.ResourceProvider.root_provider_id.in_(listed)]


def _are_listed(root_ids: Collection[int] | None) -> bool:
    return root_ids is not None and len(root_ids) <= MOST_LISTED_ROOTS


def allow_long_texts(session: Session) -> None:
    """Let the database join texts into one of any length."""
    if session.get_bind().dialect.name in ("mysql", "mariadb"):
        session.connection().execute(
            sa.text(f"SET SESSION group_concat_max_len = {JOINED_LENGTH}")
        )


class _Loader:
    """Reads the rows of some trees, and makes values of them."""

    def __init__(
        self,
        session: Session,
        vocabulary: Vocabulary,
        root_ids: Collection[int] | None,
    ) -> None:
        self._session = session
        self._vocabulary = vocabulary
        self._root_ids = root_ids
        self._conditions = in_trees(root_ids)

    def trees(self) -> Iterator[Tree]:
        """Yield the trees in the order of their roots' ids."""
        allow_long_texts(self._session)
        uuids, parents = self._load_providers()
        stocks = self._load_stocks()
        traits = self._load_traits()
        aggregates = self._load_aggregates()
        nothing: _Traits = ((), frozenset())
        for members in model.walk(parents):
            root_uuid = uuids[members[0][0]]
            providers = []
            for position, (provider_id, end) in enumerate(members):
                parent_id = parents[provider_id]
                names, having = traits.get(provider_id, nothing)
                providers.append(
                    Provider(
                        uuids[provider_id],
                        None if parent_id is None else uuids[parent_id],
                        root_uuid,
                        stocks.get(provider_id, {}),
                        names,
                        having,
                        aggregates.get(provider_id, nothing[1]),
                        position,
                        end,
                    )
                )
            yield _tree(providers)

    def _load_providers(self) -> tuple[dict[int, str], dict[int, int | None]]:
        """Return the UUIDs and the parents of the providers, by their ids."""
        row = models.ResourceProvider
        query = sa.select(
            row.id, row.uuid, row.parent_provider_id, row.root_provider_id
        )
        rows = self._rows(query.where(*self._in_trees(row.id)).order_by(row.id))
        if self._root_ids is not None:
            rows = [each for each in rows if each[3] in self._root_ids]
        return (
            {provider_id: uuid for provider_id, uuid, _, _ in rows},
            {provider_id: parent_id for provider_id, _, parent_id, _ in rows},
        )

    def _load_stocks(self) -> dict[int, dict[str, Stock]]:
        """Return the inventories, and what is used of them, by id of the provider."""
        row = models.Inventory
        query = sa.select(
            row.resource_provider_id,
            row.resource_class_id,
            *[getattr(row, name) for name in inventory.FIELDS],
            inventory.USED,
        )
        rows = self._rows(
            query.where(*self._in_trees(row.resource_provider_id)).order_by(
                row.resource_provider_id, row.resource_class_id
            )
        )
        classes = self._vocabulary.classes
        known: dict[tuple[Any, ...], Stock] = {}
        stocks: dict[int, dict[str, Stock]] = {}
        for provider_id, class_id, *fields, used in rows:
            # Sums are decimal numbers on some databases.
            values = (*fields, int(used))
            stock = known.get(values)
            if stock is None:
                stock = known[values] = Stock(*values)
            if class_id in classes:
                stocks.setdefault(provider_id, {})[classes[class_id]] = stock
        return stocks

    def _load_traits(self) -> dict[int, _Traits]:
        """Return the traits by id of the provider."""
        row = models.ResourceProviderTrait
        ids = sa.cast(row.trait_id, sa.String(20))
        known: dict[str, _Traits] = {}
        traits = {}
        for provider_id, joined in self._joined(sa.select(row), ids):
            if joined not in known:
                names = self._vocabulary.in_order(map(int, joined.split(SEPARATOR)))
                known[joined] = names, frozenset(names)
            traits[provider_id] = known[joined]
        return traits

    def _load_aggregates(self) -> dict[int, frozenset[str]]:
        """Return the UUIDs of the aggregates by id of the provider."""
        row = models.ResourceProviderAggregate
        query = sa.select(row).join(
            models.Aggregate, models.Aggregate.id == row.aggregate_id
        )
        known: dict[str, frozenset[str]] = {}
        aggregates = {}
        for provider_id, joined in self._joined(query, models.Aggregate.uuid):
            if joined not in known:
                known[joined] = frozenset(joined.split(SEPARATOR))
            aggregates[provider_id] = known[joined]
        return aggregates

    def _joined(
        self, associations: sa.Select[Any], text: Any
    ) -> Iterable[tuple[int, str]]:
        """Return what providers are associated with, joined into one text for each.

        One row for each association would be many times as many.

        :param associations: the table of the associations, and those it is joined with
        """
        provider_id = associations.selected_columns.resource_provider_id
        query = associations.with_only_columns(
            provider_id, sa.func.aggregate_strings(text, SEPARATOR)
        )
        return self._rows(
            query.where(text.is_not(None), *self._in_trees(provider_id))
            .group_by(provider_id)
            .order_by(provider_id)
        )

    def _in_trees(self, provider_id: Any) -> list[sa.ColumnElement[bool]]:
        """Return the condition that a provider is in one of the trees, if it is one."""
        if provider_id is models.ResourceProvider.id:
            return self._conditions
        members = sa.select(models.ResourceProvider.id)
        return [provider_id.in_(members.where(each)) for each in self._conditions]

    def _rows(self, query: sa.Executable) -> Sequence[Any]:
        return self._session.connection().execute(query).all()


def _tree(members: list[Provider]) -> Tree:
    if len(members) == 1:
        return Tree((members[0],), members[0].aggregates)
    aggregates = frozenset().union(*(member.aggregates for member in members))
    return Tree(tuple(members), aggregates)

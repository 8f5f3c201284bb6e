"""Which trees can matter to a search for allocation candidates.

A tree that is left out cannot be an anchor, nor share with one. The search decides
which of the others can serve.
"""

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa

from placement.db import models
from placement.forest import reading
from placement.forest.vocabulary import Vocabulary
from placement.model.inventory import LARGEST_AMOUNT
from placement.model.request import Request
from placement.model.tree import SHARING
from placement.objects import inventory

# The root of each provider, by the ids of both.
Members: TypeAlias = Mapping[int, int]
# The ids of roots; None for all.
Roots: TypeAlias = frozenset[int] | None


@dataclasses.dataclass(frozen=True, slots=True)
class Relevant:
    """The trees that can matter, by the ids of their roots.

    ``anchors`` may serve, with the help of ``others``: the trees of providers that
    share with them, and those that ``in_tree`` names. ``anchors`` is None for all.
    """

    anchors: Roots
    others: frozenset[int] = frozenset()

    @property
    def roots(self) -> Roots:
        """The roots of all of them together; None for all."""
        return self.anchors.union(self.others) if self.anchors else self.anchors


def list_relevant(
    connection: sa.Connection, request: Request, vocabulary: Vocabulary
) -> Relevant:
    """Return all trees that can matter.

    :param request: a request in which all names exist
    """
    return _Finder(connection, request, vocabulary).relevant()


class _Finder:
    """Finds the providers that meet needs, with one query for each kind of need.

    Each need must be met by a member of the anchor's tree, or by a sharing provider.
    """

    def __init__(
        self, connection: sa.Connection, request: Request, vocabulary: Vocabulary
    ) -> None:
        self._connection = connection
        self._request = request
        self._vocabulary = vocabulary
        self._named: Mapping[str, int] = {}
        self._sharing: Members = {}
        self._useful: set[int] = set()
        self._anchors: Roots = None

    def relevant(self) -> Relevant:
        """Return all trees that can matter."""
        self._named = self._roots_by_name()
        self._sharing = self._providers_that_share()
        self._restrict_to_named()
        for members in self._having_traits():
            self._restrict(members)
        for members in self._having_aggregates():
            self._restrict(members)
        for members in self._having_room():
            self._restrict(members)
        sharing = (self._sharing[provider] for provider in self._useful)
        return Relevant(self._anchors, frozenset((*sharing, *self._named.values())))

    def _restrict(self, members: Members) -> None:
        """Keep only anchors whose tree meets a need, unless a sharing provider does."""
        useful = self._sharing.keys() & members.keys()
        self._useful |= useful
        if not useful:
            self._restrict_to(members.values())

    def _restrict_to(self, root_ids: Iterable[int]) -> None:
        if self._anchors is None:
            self._anchors = frozenset(root_ids)
        else:
            self._anchors = self._anchors.intersection(root_ids)

    def _restrict_to_named(self) -> None:
        """Keep only the tree that the group without suffix names, if it names one."""
        for group in self._request.groups:
            if group.in_tree is not None and not group.suffix:
                root_id = self._named.get(group.in_tree)
                self._restrict_to(() if root_id is None else (root_id,))

    def _roots_by_name(self) -> dict[str, int]:
        """Return the roots of the trees that ``in_tree`` names, by what it says."""
        row = models.ResourceProvider
        uuids = {
            group.in_tree for group in self._request.groups if group.in_tree is not None
        }
        query = sa.select(row.uuid, row.root_provider_id).where(
            row.uuid.in_(sorted(uuids))
        )
        rows = self._rows(query.order_by(row.id)) if uuids else ()
        return {uuid: root_id for uuid, root_id in rows if uuid in uuids}

    def _providers_that_share(self) -> Members:
        row = models.ResourceProviderTrait
        trait_id = self._vocabulary.trait_ids.get(SHARING)
        query = _associated(row.trait_id).where(row.trait_id == trait_id)
        return {provider: root for provider, root, _ in self._rows(query)}

    def _having_traits(self) -> Iterator[Members]:
        """Yield the providers with each required trait, or one of a list of traits."""
        row = models.ResourceProviderTrait
        ids = self._vocabulary.trait_ids
        anywhere = {
            one_of for group in self._request.groups for one_of in group.required
        }
        names = self._request.root_required.union(*anywhere)
        if not names:
            return
        wanted = row.trait_id.in_(sorted(ids[name] for name in names))
        members = _grouped(self._rows(_associated(row.trait_id).where(wanted)))
        for one_of in anywhere:
            yield _any_of(members, (ids[name] for name in one_of))
        for name in self._request.root_required:
            having = members.get(ids[name], {})
            # Only the root itself will do, not even a provider that shares.
            self._restrict_to(root for member, root in having.items() if member == root)

    def _having_aggregates(self) -> Iterator[Members]:
        """Yield the members of the aggregates of each ``member_of``."""
        row = models.ResourceProviderAggregate
        wanted = {
            one_of for group in self._request.groups for one_of in group.member_of
        }
        if not wanted:
            return
        query = (
            _associated(row.aggregate_id, models.Aggregate.uuid)
            .join(models.Aggregate, models.Aggregate.id == row.aggregate_id)
            .where(models.Aggregate.uuid.in_(sorted(frozenset().union(*wanted))))
        )
        members = _grouped(self._rows(query))
        for one_of in wanted:
            yield _any_of(members, one_of)

    def _having_room(self) -> Iterator[Members]:
        """Yield, for each class, the providers with room for the least amount asked."""
        least: dict[int, int] = {}
        ids = self._vocabulary.class_ids
        for group in self._request.groups:
            for name, amount in group.resources.items():
                class_id = ids[name]
                least[class_id] = min(amount, least.get(class_id, amount))
        amounts = {
            class_id: amount
            for class_id, amount in least.items()
            if amount <= LARGEST_AMOUNT
        }
        members = _grouped(self._rows(self._with_room(amounts))) if amounts else {}
        for class_id in least:
            yield members.get(class_id, {})

    def _with_room(self, amounts: Mapping[int, int]) -> sa.Executable:
        """Select the inventories that may have room for an amount, by class id."""
        row = models.Inventory
        amount = sa.case(dict(amounts), value=row.resource_class_id)
        roots = None
        if self._anchors is not None:
            roots = self._anchors.union(self._sharing.values())
        return (
            sa.select(
                row.resource_provider_id,
                models.ResourceProvider.root_provider_id,
                row.resource_class_id,
            )
            .join(
                models.ResourceProvider,
                models.ResourceProvider.id == row.resource_provider_id,
            )
            .where(*_in_trees(roots))
            .where(row.resource_class_id.in_(sorted(amounts)))
            .where(row.max_unit >= amount)
            .where(inventory.may_hold(row, inventory.USED, amount))
            .order_by(row.resource_provider_id, row.resource_class_id)
        )

    def _rows(self, query: sa.Executable) -> Sequence[Any]:
        return self._connection.execute(query).all()


def _associated(thing: Any, name: Any = None) -> sa.Select[Any]:
    """Select what has an association: provider, root, and the thing or its name."""
    row, providers = thing.class_, models.ResourceProvider
    named = thing if name is None else name
    return (
        sa.select(providers.id, providers.root_provider_id, named)
        .select_from(row)
        .join(providers, providers.id == row.resource_provider_id)
        .order_by(thing, providers.id)
    )


def _grouped(rows: Iterable[Sequence[Any]]) -> dict[Any, Members]:
    """Group rows of provider, root and thing by the thing."""
    grouped: dict[Any, dict[int, int]] = {}
    for provider_id, root_id, thing in rows:
        grouped.setdefault(thing, {})[provider_id] = root_id
    return dict(grouped)


def _any_of(members: Mapping[Any, Members], things: Iterable[Any]) -> Members:
    """Return the providers that are associated with any of the things."""
    found: dict[int, int] = {}
    for thing in things:
        found.update(members.get(thing, {}))
    return found


def _in_trees(root_ids: Collection[int] | None) -> list[sa.ColumnElement[bool]]:
    """Return the condition that a provider is in some trees, unless they are many."""
    if root_ids is None or len(root_ids) > reading.MOST_LISTED_ROOTS:
        return []
    return [models.ResourceProvider.root_provider_id.in_(sorted(root_ids))]

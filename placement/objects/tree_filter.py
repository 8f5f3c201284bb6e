"""Which trees can matter to a search for allocation candidates.

What is left out cannot be an anchor, nor share with one. Whether what is left in can
serve is for the search to say.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.orm import Session

from placement.db import models
from placement.objects.snapshot import Vocabulary
from placement.search.model import SHARING, Request

# No inventory has more.
LARGEST_AMOUNT = 0x7FFFFFFF
# How far a ratio may be off while MariaDB calculates with its single precision.
TOLERANCE = 1e-6

# The ids of a provider and of the root of its tree.
Member: TypeAlias = tuple[int, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Need:
    """Something that some provider which serves an anchor must have.

    ``members`` have it. Without ``sharable``, the anchor itself must.
    """

    members: frozenset[Member]
    sharable: bool = True

    def roots(self, sharing: frozenset[Member]) -> frozenset[int] | None:
        """Return the roots of the trees that meet the need; None if any tree may."""
        if not self.sharable:
            return frozenset(
                root for provider, root in self.members if provider == root
            )
        if self.members & sharing:
            return None
        return frozenset(root for _, root in self.members)


def list_roots(
    session: Session, request: Request, vocabulary: Vocabulary
) -> frozenset[int] | None:
    """Return the ids of the roots of all trees that can matter; None for all.

    :param request: one that names nothing which does not exist
    """
    finder = _Finder(session, vocabulary)
    needs = [
        *finder.resources(request),
        *finder.traits(request),
        *finder.aggregates(request),
    ]
    sharing = finder.sharing()
    named = finder.named(request)
    anchors: frozenset[int] | None = None
    restrictions = [need.roots(sharing) for need in needs]
    restrictions += [
        frozenset({named[group.in_tree]} if group.in_tree in named else ())
        for group in request.groups
        if group.in_tree is not None and not group.suffix
    ]
    for roots in restrictions:
        if roots is not None:
            anchors = roots if anchors is None else anchors & roots
    if not anchors:
        return anchors
    useful = frozenset(member for need in needs for member in need.members)
    return anchors.union((root for _, root in useful & sharing), named.values())


class _Finder:
    """Finds who has what, with one query for each kind of thing."""

    def __init__(self, session: Session, vocabulary: Vocabulary) -> None:
        self._connection = session.connection()
        self._vocabulary = vocabulary

    def resources(self, request: Request) -> Iterator[Need]:
        """Return a need for each class: room for the least that a group asks of it."""
        least: dict[int, int] = {}
        ids = self._vocabulary.class_ids()
        for group in request.groups:
            for name, amount in group.resources.items():
                class_id = ids[name]
                least[class_id] = min(amount, least.get(class_id, amount))
        affordable = {
            class_id: amount
            for class_id, amount in least.items()
            if amount <= LARGEST_AMOUNT
        }
        members = _grouped(self._rows(_with_room(affordable)) if affordable else ())
        for class_id in least:
            yield Need(members.get(class_id, frozenset()))

    def traits(self, request: Request) -> Iterator[Need]:
        """Return a need for each trait, or list of traits, that is required."""
        row = models.ResourceProviderTrait
        ids = self._vocabulary.trait_ids()
        anywhere = {one_of for group in request.groups for one_of in group.required}
        names = request.root_required.union(*anywhere)
        query = _associated(row.trait_id).where(
            row.trait_id.in_(sorted(ids[name] for name in names))
        )
        members = _grouped(self._rows(query) if names else ())
        for one_of in anywhere:
            yield Need(_any_of(members, (ids[name] for name in one_of)))
        for name in request.root_required:
            yield Need(_any_of(members, [ids[name]]), sharable=False)

    def aggregates(self, request: Request) -> Iterator[Need]:
        """Return a need for each ``member_of`` that is not forbidden."""
        row = models.ResourceProviderAggregate
        wanted = {one_of for group in request.groups for one_of in group.member_of}
        uuids = frozenset().union(*wanted)
        query = (
            _associated(row.aggregate_id)
            .join(models.Aggregate, models.Aggregate.id == row.aggregate_id)
            .with_only_columns(
                models.ResourceProvider.id,
                models.ResourceProvider.root_provider_id,
                models.Aggregate.uuid,
            )
            .where(models.Aggregate.uuid.in_(sorted(uuids)))
        )
        members = _grouped(self._rows(query) if uuids else ())
        for one_of in wanted:
            yield Need(_any_of(members, one_of))

    def sharing(self) -> frozenset[Member]:
        """Return the providers that serve other trees as well."""
        row = models.ResourceProviderTrait
        trait_id = self._vocabulary.trait_ids().get(SHARING)
        query = _associated(row.trait_id).where(row.trait_id == trait_id)
        return frozenset((provider, root) for provider, root, _ in self._rows(query))

    def named(self, request: Request) -> dict[str, int]:
        """Return the roots of the trees that ``in_tree`` names."""
        row = models.ResourceProvider
        uuids = {group.in_tree for group in request.groups if group.in_tree is not None}
        query = sa.select(row.uuid, row.root_provider_id).where(
            row.uuid.in_(sorted(uuids))
        )
        rows = self._rows(query.order_by(row.id)) if uuids else ()
        return {uuid: root for uuid, root in rows if uuid in uuids}

    def _rows(self, query: sa.Executable) -> Sequence[Any]:
        return self._connection.execute(query).all()


def _with_room(amounts: Mapping[int, int]) -> sa.Executable:
    """Select the inventories that may have room for an amount, keyed by class id."""
    row, taken = models.Inventory, models.Allocation
    used = (
        sa.select(
            taken.resource_provider_id,
            taken.resource_class_id,
            sa.func.sum(taken.used).label("used"),
        )
        .where(taken.resource_class_id.in_(sorted(amounts)))
        .group_by(taken.resource_provider_id, taken.resource_class_id)
        .subquery()
    )
    amount = sa.case(dict(amounts), value=row.resource_class_id)
    capacity = (row.total - row.reserved) * row.allocation_ratio
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
        .outerjoin(
            used,
            sa.and_(
                used.c.resource_provider_id == row.resource_provider_id,
                used.c.resource_class_id == row.resource_class_id,
            ),
        )
        .where(row.resource_class_id.in_(sorted(amounts)))
        .where(row.max_unit >= amount)
        .where(sa.func.coalesce(used.c.used, 0) + amount <= capacity * (1 + TOLERANCE))
        .order_by(row.resource_class_id, row.resource_provider_id)
    )


def _associated(thing: Any) -> sa.Select[Any]:
    """Select who is associated with a thing: provider, root, thing."""
    row = thing.class_
    return (
        sa.select(
            models.ResourceProvider.id, models.ResourceProvider.root_provider_id, thing
        )
        .select_from(row)
        .join(
            models.ResourceProvider,
            models.ResourceProvider.id == row.resource_provider_id,
        )
        .order_by(thing, models.ResourceProvider.id)
    )


def _grouped(rows: Iterable[Sequence[Any]]) -> dict[Any, frozenset[Member]]:
    """Group rows of provider, root and thing by the thing."""
    grouped: dict[Any, list[Member]] = {}
    for provider_id, root_id, thing in rows:
        grouped.setdefault(thing, []).append((provider_id, root_id))
    return {thing: frozenset(members) for thing, members in grouped.items()}


def _any_of(
    members: Mapping[Any, frozenset[Member]], things: Iterable[Any]
) -> frozenset[Member]:
    return frozenset().union(*(members.get(thing, ()) for thing in things))

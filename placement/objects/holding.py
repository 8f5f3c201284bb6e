"""Allocations tree by tree, in one pass; the consumers that hold most of a provider."""

import bisect
import contextlib
import datetime
import itertools
from collections.abc import Collection, Generator, Iterator, Mapping
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.model.allocation import Holder, Holding, Owner
from placement_foundation.database import storage

# How many rows are fetched at a time.
BATCH = 2_000
# How many holders are listed for one inventory.
MOST = 10

_held, _consumer = models.Allocation, models.Consumer
_provider = models.ResourceProvider
_HOLDINGS: sa.Select[*tuple[Any, ...]] = (
    sa.select(
        _provider.root_provider_id,
        _provider.id,
        _held.consumer_id,
        _held.resource_class_id,
        _held.used,
    )
    .select_from(_held)
    .join(_provider, models.OF_PROVIDER)
    .where(_provider.root_provider_id.is_not(None))
    .order_by(
        _provider.root_provider_id,
        _provider.id,
        _held.consumer_id,
        _held.resource_class_id,
    )
)
_OWNED = (
    _HOLDINGS.add_columns(
        models.Project.external_id,
        models.User.external_id,
        models.ConsumerType.name,
        _consumer.created_at,
    )
    .outerjoin(_consumer, models.OF_CONSUMER)
    .outerjoin(models.Project, models.OF_PROJECT)
    .outerjoin(models.User, models.OF_USER)
    .outerjoin(models.ConsumerType)
)

_pairs = (
    sa.select(_provider.root_provider_id, _held.consumer_id)
    .distinct()
    .join(_held, models.OF_PROVIDER)
    .where(_provider.root_provider_id.is_not(None))
)


def count_consumers(
    connection: sa.Connection, root_ids: Collection[int] | None = None
) -> dict[int, int]:
    """Return how many consumers use something of each tree, by the id of its root.

    :param root_ids: the needed trees, maybe not the only ones; None means all
    """
    pairs = _of(_pairs, root_ids).subquery()
    root_id = pairs.c.root_provider_id
    query = sa.select(root_id, sa.func.count()).group_by(root_id).order_by(root_id)
    return {row[0]: row[1] for row in connection.execute(query)}


def _of(
    query: sa.Select[*tuple[Any, ...]], root_ids: Collection[int] | None
) -> sa.Select[*tuple[Any, ...]]:
    """Restrict a query to some trees, if they are few."""
    if root_ids is None or len(root_ids) > storage.CHUNK:
        return query
    return query.where(_provider.root_provider_id.in_(sorted(root_ids)))


def read(
    connection: sa.Connection,
    classes: Mapping[int, str],
    root_ids: Collection[int] | None = None,
    *,
    owners: bool = False,
) -> Generator[Holding, None, None]:
    """Yield allocations in the order of the ids of their roots and providers.

    One statement reads them during the iteration. MySQL keeps only one result open on a
    connection: until all is read, or the generator is closed, it can execute no other
    statement.

    :param classes: the names of resource classes, by id
    :param root_ids: the needed trees, maybe not the only ones; None means all
    :param owners: whether to read the owners of the consumers as well
    """
    query = _of(_OWNED if owners else _HOLDINGS, root_ids)
    rows = connection.execute(query, execution_options={"yield_per": BATCH})
    with contextlib.closing(rows):
        yield from _holdings(rows, classes)


def list_largest(
    connection: sa.Connection,
    classes: Mapping[int, str],
    providers: Mapping[int, str],
    ignored: Collection[str] = (),
) -> dict[tuple[str, str], list[Holder]]:
    """Return the holders of some providers' inventories, the largest first.

    :param classes: the names of resource classes, by id
    :param providers: the UUIDs of the providers, by id
    :param ignored: consumers that are left out
    :returns: keyed by UUID of the provider and name of the class
    """
    query = _OWNED.where(_provider.id.in_(sorted(providers)))
    holders: dict[tuple[str, str], list[Holder]] = {}
    rows = connection.execute(query, execution_options={"yield_per": BATCH})
    for each in _holdings(rows, classes):
        if each.consumer not in ignored:
            owner = each.owner and (each.owner.type, each.owner.project)
            for name, amount in each.amounts.items():
                place = providers[each.provider_id], name
                holder = Holder(each.consumer, amount, *(owner or (None, None)))
                listed = holders.setdefault(place, [])
                bisect.insort(listed, holder, key=_largest_first)
                # Very many may share one provider.
                del listed[MOST:]
    return holders


def _largest_first(holder: Holder) -> tuple[int, str]:
    return -holder.amount, holder.consumer


def _holdings(
    rows: sa.CursorResult[*tuple[Any, ...]],
    classes: Mapping[int, str],
) -> Iterator[Holding]:
    for (root_id, provider_id, consumer), each in itertools.groupby(
        rows, itemgetter(0, 1, 2)
    ):
        amounts: dict[str, int] = {}
        for row in each:
            if row[3] in classes:
                name = classes[row[3]]
                amounts[name] = amounts.get(name, 0) + int(row[4])
        if amounts:
            yield Holding(root_id, provider_id, consumer, amounts, _owner(*row[5:]))


def _owner(
    project: str | None = None,
    user: str | None = None,
    kind: str | None = None,
    created: datetime.datetime | None = None,
) -> Owner | None:
    """Return the owner of a consumer; None if none was read, or none is recorded."""
    if project is None or user is None:
        return None
    return Owner(project, user, kind, created)

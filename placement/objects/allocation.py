"""Allocations as they are read: how much of which providers each consumer uses."""

import collections
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.model.allocation import (
    Allocation,
    Allocations,
    Place,
)
from placement.model.consumer import Consumer
from placement.objects import (
    clock,
    exact_match,
    resource_provider,
)
from placement_foundation.database import storage

_ALLOCATION_ROWS = sa.select(
    models.Consumer.uuid,
    models.Project.external_id,
    models.User.external_id,
    models.ConsumerType.name,
    models.Consumer.generation,
    models.ResourceProvider.uuid.label("provider_uuid"),
    resource_provider.stored_generation(models.ResourceProvider).label(
        "provider_generation"
    ),
    models.ResourceClass.name.label("class_name"),
    models.Allocation.used,
    models.Allocation.created_at,
).order_by(models.Consumer.id, models.ResourceProvider.id, models.ResourceClass.id)
_OF_CONSUMERS = (
    _ALLOCATION_ROWS.select_from(models.Allocation)
    .join(models.ResourceProvider, models.OF_PROVIDER)
    .join(models.ResourceClass, models.OF_CLASS)
    .join(models.Consumer, models.OF_CONSUMER)
    .join(models.Project, models.OF_PROJECT)
    .join(models.User, models.OF_USER)
    .outerjoin(models.ConsumerType)
    .where(models.Consumer.uuid.in_(sa.bindparam("consumers", expanding=True)))
)
# A provider without allocations has one row, for its generation. Outer joins also keep
# MariaDB from beginning elsewhere: it takes tables for empty that have grown since the
# server opened them, and would begin with the consumers of all projects.
_OF_PROVIDER = (
    _ALLOCATION_ROWS.select_from(models.ResourceProvider)
    .outerjoin(models.Allocation, models.OF_PROVIDER)
    .outerjoin(models.ResourceClass, models.OF_CLASS)
    .outerjoin(models.Consumer, models.OF_CONSUMER)
    .outerjoin(models.Project, models.OF_PROJECT)
    .outerjoin(models.User, models.OF_USER)
    .outerjoin(models.ConsumerType)
    .where(
        models.ResourceProvider.uuid == sa.bindparam("wanted"),
        models.ResourceProvider.root_provider_id.is_not(None),
    )
)


def list_by_consumer(connection: sa.Connection, uuid: str) -> Allocations:
    """Return the allocations of a consumer, in the order of provider and class ids."""
    return _with_time(_rows_of_consumers(connection, [uuid]))


def list_by_consumers(
    connection: sa.Connection, uuids: Collection[str]
) -> dict[str, list[Allocation]]:
    """Return the allocations of consumers, by UUID, without those that have none."""
    allocations: dict[str, list[Allocation]] = {}
    for each in _allocations_of(_rows_of_consumers(connection, uuids)):
        allocations.setdefault(each.consumer.uuid, []).append(each)
    return allocations


def _rows_of_consumers(
    connection: sa.Connection, uuids: Collection[str]
) -> Sequence[Any]:
    wanted = sorted(exact_match.searchable(uuids))
    rows = storage.select_each(connection, _OF_CONSUMERS, "consumers", wanted)
    # MariaDB also finds UUIDs that differ in case.
    return [row for row in rows if row.uuid in uuids]


def load_freed(
    connection: sa.Connection, consumers: Collection[str]
) -> Mapping[Place, int]:
    """Return how much consumers use of each inventory."""
    freed: collections.Counter[Place] = collections.Counter()
    for allocations in list_by_consumers(connection, consumers).values():
        for each in allocations:
            for name, amount in each.amounts.items():
                freed[each.provider_uuid, name] += amount
    return freed


def list_by_provider(
    connection: sa.Connection, uuid: str
) -> tuple[int | None, Allocations]:
    """Return the generation of a provider, and the allocations against it.

    They are ordered by consumer and class id. The generation is None, and there are no
    allocations, if there is no such provider.
    """
    if not exact_match.is_searchable(uuid):
        return None, _with_time([])
    found: Iterable[Any] = connection.execute(_OF_PROVIDER, {"wanted": uuid})
    rows = [row for row in found if row.provider_uuid == uuid]
    # Allocations that lack a consumer or one of its names are not part of the API.
    complete = [row for row in rows if None not in (*row[:3], row.class_name)]
    number = rows[0].provider_generation if rows else None
    return number, _with_time(complete)


def _with_time(rows: Sequence[Any]) -> Allocations:
    modified = clock.newest(row.created_at for row in rows)
    return Allocations(_allocations_of(rows), modified)


def _allocations_of(rows: Iterable[Any]) -> list[Allocation]:
    amounts: dict[tuple[Any, ...], dict[str, int]] = {}
    for *key, class_name, used, _ in rows:
        amounts.setdefault(tuple(key), {})[class_name] = used
    return [
        Allocation(Consumer(*consumer), provider_uuid, generation, each)
        for (*consumer, provider_uuid, generation), each in amounts.items()
    ]

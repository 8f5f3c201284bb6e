"""The locks of a write of allocations: on consumers, and then on providers."""

import collections
import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.model.allocation import (
    Claim,
    Place,
    class_names,
    provider_uuids,
)
from placement.objects import (
    consumer,
    exact_match,
    resource_provider,
)
from placement.objects.exact_match import WantedStrings
from placement.objects.resource_provider import Locked
from placement.objects.transaction import Transaction
from placement_foundation.database import storage

# The columns of a ``Row``, after the id of the consumer's record.
_ROWS = (
    sa.select(
        models.Consumer.id,
        models.Allocation.id,
        models.Allocation.consumer_id,
        models.ResourceProvider.uuid,
        models.ResourceClass.name,
        models.Allocation.used,
    )
    .select_from(models.Allocation)
    .join(
        models.ResourceProvider,
        models.ResourceProvider.id == models.Allocation.resource_provider_id,
    )
    .join(
        models.ResourceClass,
        models.ResourceClass.id == models.Allocation.resource_class_id,
    )
    .outerjoin(models.Consumer, models.Consumer.uuid == models.Allocation.consumer_id)
    .where(models.Allocation.consumer_id.in_(sa.bindparam("consumers", expanding=True)))
    .order_by(models.Allocation.id)
)
_IDS = sa.select(models.Allocation.id)


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A stored allocation. Its consumer is locked, if that has a record."""

    id: int
    consumer_uuid: str
    provider_uuid: str
    class_name: str
    used: int


@dataclasses.dataclass(frozen=True, slots=True)
class ClaimNames:
    """The consumers and ids that belong to the names in claims, before any lock.

    ``consumers`` are those with a record or allocations. ``class_ids`` are keyed by
    name, and so are ``owners``, the ids of projects, users and types. ``provider_ids``
    are keyed by UUID; they are empty unless the database needs them to lock providers.
    """

    consumers: frozenset[str]
    class_ids: Mapping[str, int]
    provider_ids: Mapping[str, int]
    owners: Sequence[Mapping[str, int]]


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """The locked consumers and providers of a write, and the rows that it replaces.

    Existing consumers and providers are keyed by UUID.
    """

    consumers: Mapping[str, consumer.Record]
    providers: Mapping[str, Locked]
    rows: Sequence[Row]


def look_up(connection: sa.Connection, claims: Collection[Claim]) -> ClaimNames:
    """Look up the names in claims, with one statement.

    Only the absence of a consumer can be relied on: of two requests that create the
    same one, one loses the race.
    """
    needs_ids = connection.dialect.name in ("mysql", "mariadb")
    consumers = {each.consumer.uuid for each in claims}
    providers = provider_uuids(claims) if needs_ids else ()
    wanted = [each.consumer for each in claims if each.amounts]
    allocation, kind, provider = (
        models.Allocation,
        models.ResourceClass,
        models.ResourceProvider,
    )
    recorded, using, class_ids, provider_ids, *owners = exact_match.ids_of_all(
        connection,
        [
            WantedStrings(models.Consumer.id, models.Consumer.uuid, consumers),
            WantedStrings(allocation.id, allocation.consumer_id, consumers),
            WantedStrings(kind.id, kind.name, class_names(claims)),
            WantedStrings(provider.id, provider.uuid, providers),
            *consumer.list_owner_names(wanted),
        ],
    )
    return ClaimNames(frozenset({*recorded, *using}), class_ids, provider_ids, owners)


def hold(
    tx: Transaction,
    consumers: Collection[str],
    providers: Iterable[str] = (),
    *,
    ids: Mapping[str, int] = exact_match.NONE,
    beside: Collection[str] = (),
) -> Held:
    """Lock everything that a write of allocations touches.

    All transactions take these locks in the same order: consumers, then providers, each
    by id. Under these locks, no other transaction changes the usages.

    :param consumers: the UUIDs of the consumers whose allocations are replaced
    :param providers: the UUIDs of the providers that they are to use
    :param ids: the known ids of providers, by UUID
    :param beside: the UUIDs of other providers to lock
    """
    records = consumer.lock(tx, consumers)
    rows = _list_rows(tx, consumers, records)
    uuids = {row.provider_uuid for row in rows}.union(providers, beside)
    return Held(records, resource_provider.lock_by_uuids(tx, uuids, ids), rows)


def narrow(held: Held, uuids: Collection[str]) -> Held:
    """Return the part of ``held`` that belongs to some of the consumers."""
    rows = [row for row in held.rows if row.consumer_uuid in uuids]
    used = {row.provider_uuid for row in rows}
    return Held(
        {uuid: held.consumers[uuid] for uuid in uuids if uuid in held.consumers},
        {uuid: each for uuid, each in held.providers.items() if uuid in used},
        rows,
    )


def check_providers(claims: Iterable[Claim], held: Held) -> None:
    """Check that the providers named in claims exist.

    :raises BadRequest: a provider does not exist; it names the first such
    """
    for uuid in provider_uuids(claims):
        if uuid not in held.providers:
            raise errors.BadRequest(
                f"Allocation for resource provider '{uuid}' that does not exist."
            )


def _list_rows(
    tx: Transaction, uuids: Iterable[str], records: Collection[str]
) -> list[Row]:
    """Return the allocations of locked consumers, and of those without a record.

    Allocations of a consumer that another request has just created are left out.
    """
    searchable = {uuid for uuid in uuids if exact_match.is_searchable(uuid)}
    rows: list[Row] = []
    stray: list[Row] = []
    for chunk in storage.chunks(sorted(searchable)):
        fetched: Sequence[Any] = tx.execute(_ROWS, {"consumers": chunk}).all()
        for record_id, *fields in fetched:
            row = Row(*fields)
            if row.consumer_uuid in records:
                rows.append(row)
            elif record_id is None and row.consumer_uuid in searchable:
                stray.append(row)
    return rows + _lock_stray(tx, stray)


def _lock_stray(tx: Transaction, rows: Sequence[Row]) -> list[Row]:
    """Lock allocations whose consumer has no record; return those still there.

    Other services left these allocations behind. They count as used until their
    consumer is written.
    """
    kept: set[int] = set()
    for chunk in storage.chunks(sorted(row.id for row in rows)):
        row = models.Allocation
        locked = storage.lock_rows(tx.connection, _IDS, row.id, chunk)
        kept.update(each.id for each in locked)
    return [row for row in rows if row.id in kept]


def sum_up(rows: Iterable[Row]) -> dict[Place, int]:
    """Return the amount that rows use of each inventory."""
    used: collections.Counter[Place] = collections.Counter()
    for row in rows:
        used[row.provider_uuid, row.class_name] += row.used
    return used


def amounts_of(rows: Iterable[Row]) -> dict[str, dict[str, dict[str, int]]]:
    """Return the amounts of rows, by consumer, provider and class."""
    amounts: dict[str, dict[str, dict[str, int]]] = {}
    for row in rows:
        of_consumer = amounts.setdefault(row.consumer_uuid, {})
        of_consumer.setdefault(row.provider_uuid, {})[row.class_name] = row.used
    return amounts

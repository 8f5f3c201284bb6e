"""Leases: claims that end by themselves, unless they are renewed or confirmed.

Renewals, confirmations, deletions and the end of a lease all lock the consumer: the
first one to commit wins.
"""

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from oslo_log import log

from placement import errors, measure
from placement.db import models
from placement.model.entry import EntryType
from placement.model.lease import Lease
from placement.objects import clock, lease, locking, replacing
from placement.objects.ledger import Ledger
from placement.objects.transaction import Transaction
from placement_foundation.database.origin import Origin
from placement_foundation.observing import telemetry

LOG = log.getLogger(__name__)

# How often each process looks for leases whose time has come, in seconds.
EVERY = 3
# How many leases one transaction ends: few enough for others not to wait long.
BATCH = 100
# The origin of the writes in the journal.
ENDING = "end of leases"

_row = models.LEASES.c
_listed = (
    sa.select(
        models.Consumer.uuid,
        _row.expires_at,
        models.Project.external_id,
        models.ConsumerType.name,
    )
    .select_from(models.LEASES)
    .join(models.Consumer, models.IS_LEASED)
    .join(models.Project, models.OF_PROJECT)
    .outerjoin(models.ConsumerType)
    .order_by(_row.expires_at, models.Consumer.uuid)
)
_ANY_DUE = (
    sa.select(_row.consumer_id)
    .where(_row.expires_at <= sa.bindparam("now"))
    .order_by(_row.expires_at)
    .limit(1)
)
_DUE = (
    sa.select(_row.consumer_id, models.Consumer.uuid)
    .select_from(sa.outerjoin(models.LEASES, models.Consumer, models.IS_LEASED))
    .where(_row.expires_at <= sa.bindparam("now"))
    .order_by(_row.expires_at, _row.consumer_id)
    .limit(BATCH)
)


def renew(tx: Transaction, uuid: str, seconds: int) -> Lease:
    """Give a consumer with allocations a lease from now on, and return it.

    :raises NotFound: the consumer has no allocations: its lease may have ended
    :raises NoLeases: there is no table for leases
    """
    lease.check_kept(tx.connection)
    held = locking.lock_consumers(tx, [uuid])
    if not held or not locking.look_up(tx.connection, consumers=[uuid]).using:
        raise errors.NotFound(f"No allocations for consumer '{uuid}'")
    end = lease.replace(tx, {held[uuid].id: uuid}, seconds)
    return Lease(uuid, end)


def confirm(tx: Transaction, uuid: str) -> None:
    """Remove the lease of a consumer: its allocations stay.

    :raises NotFound: the consumer has no lease
    """
    held = locking.lock_consumers(tx, [uuid])
    ends = lease.load(tx.connection, [each.id for each in held.values()])
    if not ends:
        raise _no_lease(uuid)
    lease.remove(tx, ends)
    [end] = ends.values()
    lease.record(tx, EntryType.LEASE_CONFIRMED, uuid, end, None)


def get(connection: sa.Connection, uuid: str) -> Lease:
    """Return the lease of a consumer.

    :raises NotFound: the consumer has no lease
    """
    for each in _list(connection, [models.Consumer.uuid == uuid], limit=2):
        # MariaDB also finds UUIDs that differ in case.
        if each.consumer == uuid:
            return each
    raise _no_lease(uuid)


def list_by_end(
    connection: sa.Connection,
    *,
    project_id: str | None,
    before: int | None,
    after: tuple[int, str] | None,
    limit: int,
) -> list[Lease]:
    """Return leases in the order of their ends.

    :param before: only leases that end before this time
    :param after: only leases after one with this end and consumer, in this order
    """
    conditions: list[sa.ColumnElement[bool]] = []
    if project_id is not None:
        conditions.append(models.Project.external_id == project_id)
    if before is not None:
        conditions.append(_row.expires_at < before)
    if after is not None:
        end, uuid = after
        same = (_row.expires_at == end) & (models.Consumer.uuid > uuid)
        conditions.append((_row.expires_at > end) | same)
    leases = _list(connection, conditions, limit)
    # MariaDB also finds names that differ in case: then it has no other of that name.
    return [each for each in leases if project_id in (None, each.project_id)]


def _list(
    connection: sa.Connection, conditions: list[sa.ColumnElement[bool]], limit: int
) -> list[Lease]:
    if not lease.are_kept(connection):
        return []
    query = _listed.where(*conditions).limit(limit)
    rows: Any = lease.execute(connection, query)
    return [Lease(*row) for row in rows]


def end_all_due(ledger: Ledger) -> int:
    """End all leases whose time has come; return how many.

    Any process may do this at any time. Each batch is a transaction, so a process that
    dies leaves nothing half-done.

    :raises Exception: the database is in trouble
    """
    total = 0
    while ledger.read(_is_any_due):
        ended = ledger.write(_end_some)
        for uuid in ended:
            LOG.info("the lease of consumer %s has ended, and its allocations", uuid)
        telemetry.record(measure.LEASES_EXPIRED, len(ended))
        total += len(ended)
    return total


def _is_any_due(connection: sa.Connection) -> bool:
    if not lease.are_kept(connection):
        return False
    now = {"now": clock.load_milliseconds(connection)}
    return lease.execute(connection, _ANY_DUE, now).first() is not None


def _end_some(tx: Transaction) -> list[str]:
    """End leases whose time has come, and all allocations of their consumers.

    If another process does this as well, the second to lock a consumer finds nothing.

    :returns: the consumers
    """
    if not lease.are_kept(tx.connection):
        return []
    tx.origin = Origin(ENDING)
    now = clock.load_milliseconds(tx.connection)
    due: Any = lease.execute(tx.connection, _DUE, {"now": now}).all()
    uuids = [row.uuid for row in due if row.uuid]
    # The locks keep out renewals from here on: look again which leases are due.
    locked = locking.lock_consumers(tx, uuids)
    ids = {record.id: uuid for uuid, record in locked.items()}
    ends = lease.load(tx.connection, list(ids))
    ended = {ids[key]: end for key, end in ends.items() if end <= now}
    for uuid, end in sorted(ended.items()):
        lease.record(tx, EntryType.LEASE_EXPIRED, uuid, end, None)
    names = locking.look_up(tx.connection, consumers=list(ended))
    replacing.delete_held(tx, locking.hold(tx, names))
    _forget_orphans(tx, due, now)
    return sorted(ended)


def _forget_orphans(tx: Transaction, due: Iterable[Any], now: int) -> None:
    """Remove leases of consumers that another service has deleted.

    That service leaves leases behind. A new consumer with the same id may have one.
    """
    ids = [row.consumer_id for row in due if row.uuid is None]
    if ids:
        orphans = (_row.consumer_id.in_(ids), _row.expires_at <= now)
        lease.execute(tx.connection, sa.delete(models.LEASES).where(*orphans))


def _no_lease(uuid: str) -> errors.NotFound:
    return errors.NotFound(f"No lease for consumer '{uuid}'")

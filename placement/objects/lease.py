"""The rows of leases: when the allocations of consumers end.

A transaction that changes a lease holds the lock of its consumer. Times are
milliseconds since 1970, by the database's clock.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.model.entry import Entry, EntryType
from placement.model.moment import as_text
from placement.objects import clock, own_table
from placement.objects.transaction import Transaction
from placement_foundation.database import storage

_row = models.LEASES.c
_OF_SOME = (
    sa.select(_row.consumer_id, _row.expires_at)
    .join(models.Consumer, models.IS_LEASED)
    .where(_row.consumer_id.in_(sa.bindparam("consumers", expanding=True)))
)
_REMOVE = sa.delete(models.LEASES).where(
    _row.consumer_id.in_(sa.bindparam("consumers", expanding=True))
)
REMEDY = (
    "The table for leases is missing or may not be written, so claims cannot end by "
    "themselves: run placement-manage db sync, and check the rights of the database "
    "user."
)


def are_kept(connection: sa.Connection) -> bool:
    """Return whether the table of leases is there, and may be written."""
    return own_table.is_writable(connection, models.LEASES)


def check_kept(connection: sa.Connection) -> None:
    """Check that the table of leases is there, and may be written.

    :raises NoLeases: the table is missing, or rights are
    """
    if not are_kept(connection):
        raise errors.NoLeases(REMEDY)


def load(connection: sa.Connection, consumer_ids: Collection[int]) -> dict[int, int]:
    """Return when leases end, by the id of their consumer."""
    ends: dict[int, int] = {}
    if are_kept(connection):
        for chunk in storage.chunks(sorted(consumer_ids)):
            rows: Iterable[Any] = execute(connection, _OF_SOME, {"consumers": chunk})
            ends.update((row.consumer_id, row.expires_at) for row in rows)
    return ends


def replace(tx: Transaction, consumers: Mapping[int, str], seconds: int) -> int:
    """Replace the leases of consumers with new ones from now on.

    :param consumers: the UUIDs of consumers, by id
    :returns: when the leases end
    :raises NoLeases: the database has no table for leases
    """
    check_kept(tx.connection)
    end = clock.load_milliseconds(tx.connection) + 1000 * seconds
    before = load(tx.connection, consumers.keys())
    # Leases of consumers that had the same ids go as well.
    remove(tx, consumers.keys())
    rows = [
        {"consumer_id": each, "consumer_uuid": consumers[each], "expires_at": end}
        for each in sorted(consumers)
    ]
    for chunk in storage.chunks(rows):
        execute(tx.connection, sa.insert(models.LEASES), chunk)
    for key, uuid in consumers.items():
        kind = EntryType.LEASE_RENEWED if key in before else EntryType.LEASE_GRANTED
        record(tx, kind, uuid, before.get(key), end)
    return end


def remove(tx: Transaction, consumer_ids: Collection[int]) -> None:
    """Remove the leases of consumers."""
    if consumer_ids and are_kept(tx.connection):
        for chunk in storage.chunks(sorted(consumer_ids)):
            execute(tx.connection, _REMOVE, {"consumers": chunk})


def record(
    tx: Transaction,
    kind: EntryType,
    consumer_uuid: str,
    before: int | None,
    after: int | None,
) -> None:
    """Record a change of the lease of a consumer.

    :param kind: one of the types that begin with ``lease.``
    :param before: its former end; None if there was no lease
    :param after: its end from now on; None if the lease is gone
    """
    old, new = (
        None if end is None else {"expires_at": as_text(end)} for end in (before, after)
    )
    tx.record([Entry(kind, consumer_uuid, old, new)])


def execute(
    connection: sa.Connection, statement: sa.Executable, parameters: Any = None
) -> sa.CursorResult[Any]:
    """Execute a statement; if the table is gone, the transaction begins again."""
    return own_table.execute(connection, models.LEASES, statement, parameters)

"""Slots: one row for each promised slot."""

import dataclasses
import datetime
from collections import Counter
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from placement_reservations import state
from placement_reservations.capacity import Holding, Interval, Size
from placement_reservations.clock import MINUTE
from placement_reservations.db import models
from placement_reservations.store import claim as claims
from placement_reservations.store import lease as leases

# For so long after the end of a lease, its end is only due, and has not failed.
GRACE = MINUTE
# The end of slots whose end is unknown.
NEVER = datetime.datetime(9500, 1, 1)


@dataclasses.dataclass(frozen=True, slots=True)
class Slot:
    """A slot as the API shows it."""

    host_id: int
    lease_id: str
    reservation_id: str
    interval: Interval


@dataclasses.dataclass(frozen=True, slots=True)
class Promise:
    """The slots of a reservation of an active lease on a host."""

    lease_id: str
    reservation_id: str
    total: int


def list_promises(connection: sa.Connection, host: str) -> list[Promise]:
    """Return the slots on a host of active leases without an operation.

    :param host: its name
    """
    table, reservation, lease = models.Allocation, models.Reservation, models.Lease
    columns = reservation.lease_id, table.reservation_id
    query = (
        sa.select(*columns, sa.func.count())
        .join(reservation, reservation.id == table.reservation_id)
        .join(lease, lease.id == reservation.lease_id)
        .join(models.ComputeHost, models.ComputeHost.id == table.computehost_id)
        .where(
            models.ComputeHost.hypervisor_hostname == host,
            table.wanted.is_(sa.false()),
            reservation.status == state.ReservationStatus.ACTIVE,
            lease.status == state.LeaseStatus.ACTIVE,
        )
        .group_by(*columns)
        .order_by(sa.func.min(table.id))
    )
    busy = claims.list_subjects(connection)
    promises = [Promise(*row) for row in connection.execute(query)]
    return [each for each in promises if leases.subject(each.lease_id) not in busy]


def list_every(
    connection: sa.Connection, cleaning: datetime.timedelta, now: datetime.datetime
) -> list[Holding]:
    """Return all slots, including those only wanted; the oldest promises first.

    Slots that are being cleaned although their lease is gone follow, without a
    reservation.
    """
    table, lease = models.Allocation, models.Lease
    place = table.computehost_id, table.reservation_id, table.wanted
    size = table.vcpus, table.memory_mb, table.disk_gb
    columns = *place, *size, table.start_date, table.end_date, lease.status
    query = (
        sa.select(*columns, sa.func.count().label("slots"))
        .join(models.Reservation, models.Reservation.id == table.reservation_id)
        .join(lease, lease.id == models.Reservation.lease_id)
        .group_by(*columns)
        .order_by(sa.func.min(table.id))
    )
    held = [_holding(row, cleaning, now) for row in connection.execute(query)]
    return held + _list_cleanings(connection, cleaning, now)


def _holding(row: Any, cleaning: datetime.timedelta, now: datetime.datetime) -> Holding:
    """Return slots; those of a lease that could not be ended are held until it is."""
    end = row.end_date
    # A lease whose end has just come ends with the next turn of an event loop.
    if end <= now and (row.status != state.LeaseStatus.ACTIVE or end <= now - GRACE):
        end = NEVER
    return Holding(
        row.computehost_id,
        row.reservation_id,
        Interval(row.start_date, end + cleaning),
        _size(row),
        row.slots,
        row.wanted,
    )


def _size(row: Any) -> Size:
    return Size(row.vcpus, row.memory_mb, row.disk_gb)


def _list_cleanings(
    connection: sa.Connection, cleaning: datetime.timedelta, now: datetime.datetime
) -> list[Holding]:
    table = models.Cleaning
    query = sa.select(table).where(table.end_date > now - cleaning).order_by(table.id)
    return [
        Holding(
            row.computehost_id,
            "",
            Interval(row.end_date, row.end_date + cleaning),
            _size(row),
            row.slots,
        )
        for row in connection.execute(query)
    ]


def begin_cleaning(
    connection: sa.Connection,
    reservation_id: str,
    cleaning: datetime.timedelta,
    now: datetime.datetime,
) -> None:
    """Begin the cleaning of the slots of a reservation that is over.

    Its slots can be deleted then. Cleanings that are over are deleted.
    """
    table, slot = models.Cleaning, models.Allocation
    connection.execute(sa.delete(table).where(table.end_date <= now - cleaning))
    columns = slot.computehost_id, slot.vcpus, slot.memory_mb, slot.disk_gb
    query = sa.select(*columns, sa.func.count().label("slots")).group_by(*columns)
    query = query.where(
        slot.reservation_id == reservation_id,
        slot.wanted.is_(sa.false()),
        slot.start_date <= now,
    )
    rows = [dict(row) for row in connection.execute(query).mappings()]
    if rows and cleaning:
        connection.execute(sa.insert(table), [{**row, "end_date": now} for row in rows])


def count_by_host(
    connection: sa.Connection, reservation_id: str, *, wanted: bool = False
) -> dict[int, int]:
    """Return how many slots a reservation has on each host, keyed by host id."""
    table = models.Allocation
    query = (
        sa.select(table.computehost_id, sa.func.count().label("slots"))
        .where(table.reservation_id == reservation_id, table.wanted.is_(wanted))
        .group_by(table.computehost_id)
        .order_by(sa.func.min(table.id))
    )
    return {row.computehost_id: row.slots for row in connection.execute(query)}


def insert(
    connection: sa.Connection,
    reservation_id: str,
    counts: Mapping[int, int],
    interval: Interval,
    size: Size,
    *,
    wanted: bool = False,
) -> None:
    """Store promised slots.

    :param counts: how many slots on each host, keyed by host id
    """
    row = {
        "reservation_id": reservation_id,
        "start_date": interval.start,
        "end_date": interval.end,
        **dataclasses.asdict(size),
        "wanted": wanted,
    }
    rows = [
        {**row, "computehost_id": host_id} for host_id in Counter(counts).elements()
    ]
    if rows:
        connection.execute(sa.insert(models.Allocation), rows)


def delete(
    connection: sa.Connection, reservation_id: str, *, wanted: bool | None = None
) -> None:
    """Delete the slots of a reservation: all, or only those that are (not) wanted."""
    table = models.Allocation
    statement = sa.delete(table).where(table.reservation_id == reservation_id)
    if wanted is not None:
        statement = statement.where(table.wanted.is_(wanted))
    connection.execute(statement)


def keep_wanted(connection: sa.Connection, reservation_id: str) -> None:
    """Turn the slots that a reservation wanted into those that it holds."""
    delete(connection, reservation_id, wanted=False)
    table = models.Allocation
    statement = sa.update(table).where(table.reservation_id == reservation_id)
    connection.execute(statement.values(wanted=False))


def is_held(connection: sa.Connection, host_id: int) -> bool:
    """Return whether any slot of a host is promised."""
    query = sa.select(models.Allocation.id)
    query = query.where(models.Allocation.computehost_id == host_id).limit(1)
    return connection.execute(query).first() is not None


def list_slots(connection: sa.Connection, **of: object) -> list[Slot]:
    """Return promised slots by host; the oldest of each host come first.

    :param of: the ``host_id``, ``lease_id`` or ``reservation_id`` that they have
    """
    table, reservation = models.Allocation, models.Reservation
    columns: dict[str, Any] = {
        "host_id": table.computehost_id,
        "lease_id": reservation.lease_id,
        "reservation_id": table.reservation_id,
    }
    query = (
        sa.select(*columns.values(), table.start_date, table.end_date)
        .join(reservation, reservation.id == table.reservation_id)
        .where(table.wanted.is_(sa.false()))
        .where(*(columns[name] == value for name, value in of.items()))
        .order_by(table.computehost_id, table.id)
    )
    return [
        Slot(row[0], row[1], row[2], Interval(row[3], row[4]))
        for row in connection.execute(query)
    ]

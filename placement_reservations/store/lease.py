"""Leases with their reservations and events."""

import dataclasses
import datetime
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from placement_foundation import errors
from placement_foundation.database import storage
from placement_reservations import state
from placement_reservations.capacity import Interval, Size
from placement_reservations.db import models
from placement_reservations.store import row

RESOURCE_TYPE = "virtual:instance"


@dataclasses.dataclass(frozen=True, slots=True)
class Wish:
    """The wish of a reservation: a number of slots of a size, on suitable hosts."""

    vcpus: int
    memory_mb: int
    disk_gb: int
    amount: int
    affinity: bool | None = None
    resource_properties: str = ""

    @property
    def size(self) -> Size:
        """Return the size of a slot."""
        return Size(self.vcpus, self.memory_mb, self.disk_gb)


@dataclasses.dataclass(frozen=True, slots=True)
class Reservation:
    """A part of a lease. Its flavor has the same id.

    It ``lacks`` slots if hosts cannot keep their promises; this is the reason.
    """

    id: str
    lease_id: str
    resource_id: str
    wish: Wish
    status: state.ReservationStatus = state.ReservationStatus.PENDING
    lacks: str | None = None
    resources_changed: bool = False
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None

    @property
    def resource_class(self) -> str:
        """Return the resource class of its instances."""
        return resource_class_of(self.id)

    @property
    def has_started(self) -> bool:
        """Return whether it was started, or should have been."""
        return self.status != state.ReservationStatus.PENDING


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """Something that happens to a lease once, at a given time."""

    id: str
    lease_id: str
    event_type: state.EventType
    time: datetime.datetime
    status: state.EventStatus
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


@dataclasses.dataclass(frozen=True, slots=True)
class Lease:
    """A project's claim on the capacity of hosts, from one time to another."""

    id: str
    name: str
    user_id: str
    project_id: str
    interval: Interval
    status: state.LeaseStatus
    reservations: tuple[Reservation, ...]
    events: tuple[Event, ...] = ()
    status_reason: str | None = None
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None

    @property
    def trouble(self) -> str | None:
        """Return in sentences why it is not as it should be."""
        lacks = [each.lacks for each in self.reservations]
        return " ".join(filter(None, [self.status_reason, *lacks])) or None

    @property
    def degraded(self) -> bool:
        """Return whether it is not as it should be."""
        return self.trouble is not None

    @property
    def has_started(self) -> bool:
        """Return whether anything in it was started, or should have been."""
        return any(reservation.has_started for reservation in self.reservations)

    def event(self, event_type: state.EventType) -> Event | None:
        """Return its event of a type, if it has one."""
        events = (event for event in self.events if event.event_type == event_type)
        return next(events, None)


def resource_class_of(reservation_id: str) -> str:
    """Return the resource class of the instances of a reservation."""
    return f"CUSTOM_RESERVATION_{reservation_id.upper().replace('-', '_')}"


def subject(lease_id: str) -> str:
    """Return the subject of a claim on a lease."""
    return f"lease:{lease_id}"


def id_of(claimed: str) -> str:
    """Return the id of the lease from the subject of a claim."""
    return claimed.partition(":")[2]


def list_leases(
    connection: sa.Connection,
    project_id: str | None = None,
    *,
    after: datetime.datetime | None = None,
) -> list[Lease]:
    """Return leases, oldest first; None does not filter.

    :param after: only those that end later
    """
    table = models.Lease
    query = sa.select(table)
    if project_id is not None:
        query = query.where(table.project_id == project_id)
    if after is not None:
        query = query.where(table.end_date > after)
    return _load(connection, query)


def get(connection: sa.Connection, lease_id: str) -> Lease:
    """Return a lease.

    :raises NotFound: there is no such lease
    """
    lease = find(connection, lease_id)
    if lease is None:
        raise errors.NotFound(f"Object with {{'lease_id': '{lease_id}'}} not found")
    return lease


def find(connection: sa.Connection, lease_id: str) -> Lease | None:
    """Return a lease if it exists."""
    query = sa.select(models.Lease).where(models.Lease.id == lease_id)
    return next(iter(_load(connection, query)), None)


def _load(connection: sa.Connection, query: sa.Select[Any]) -> list[Lease]:
    # Not the ids themselves: a statement takes a limited number of parameters.
    ids = query.with_only_columns(models.Lease.id)
    query = query.order_by(models.Lease.created_at, models.Lease.id)
    rows = connection.execute(query).mappings().all()
    reservations = _by_lease(_reservations(connection, ids))
    events = _by_lease(_events(connection, ids))
    return [
        row.load(
            Lease,
            each,
            interval=Interval(each["start_date"], each["end_date"]),
            reservations=tuple(reservations.get(each["id"], ())),
            events=tuple(events.get(each["id"], ())),
        )
        for each in rows
    ]


def _by_lease(parts: Iterable[Any]) -> dict[str, list[Any]]:
    parts_by_lease: dict[str, list[Any]] = {}
    for part in parts:
        parts_by_lease.setdefault(part.lease_id, []).append(part)
    return parts_by_lease


def _reservations(
    connection: sa.Connection, lease_ids: sa.Select[str]
) -> list[Reservation]:
    table, what = models.Reservation, models.InstanceReservation
    both = what.vcpus, what.memory_mb, what.disk_gb, what.amount, what.affinity
    changed = what.updated_at.label("wish_updated_at")
    query = (
        sa.select(table, *both, what.resource_properties, changed)
        .join(what, what.reservation_id == table.id)
        .where(table.lease_id.in_(lease_ids))
        .order_by(table.lease_id, table.position)
    )
    return [
        row.load(
            Reservation,
            each,
            wish=row.load(Wish, each),
            updated_at=max(
                filter(None, (each["updated_at"], each["wish_updated_at"])),
                default=None,
            ),
        )
        for each in connection.execute(query).mappings()
    ]


def _events(connection: sa.Connection, lease_ids: sa.Select[str]) -> list[Event]:
    table = models.Event
    query = sa.select(table).where(table.lease_id.in_(lease_ids))
    query = query.order_by(table.lease_id, table.event_type.desc())
    return [row.load(Event, each) for each in connection.execute(query).mappings()]


def insert(connection: sa.Connection, lease: Lease) -> None:
    """Store a new lease and its reservations."""
    times = {"start_date": lease.interval.start, "end_date": lease.interval.end}
    row.insert(connection, models.Lease, lease, **times)
    for position, each in enumerate(lease.reservations):
        place = {"position": position, "resource_type": RESOURCE_TYPE}
        row.insert(connection, models.Reservation, each, **place)
        ids = {"id": each.resource_id, "reservation_id": each.id, "flavor_id": each.id}
        row.insert(connection, models.InstanceReservation, each.wish, **ids)


def set_wish(connection: sa.Connection, reservation_id: str, wish: Wish) -> None:
    """Store the new wish of a reservation."""
    table = models.InstanceReservation
    changed = sa.update(table).where(table.reservation_id == reservation_id)
    connection.execute(changed.values(row.columns(table, wish)))


def update(
    connection: sa.Connection,
    lease_id: str,
    *sources: state.LeaseStatus,
    **values: object,
) -> bool:
    """Store other values of a lease, by column; return whether they were stored.

    :param sources: the states in which it is changed; none means all
    """
    table = models.Lease
    statement = sa.update(table).where(table.id == lease_id)
    if sources:
        statement = statement.where(table.status.in_(sources))
    return bool(connection.execute(statement.values(**values)).rowcount)


def set_reservation_status(
    connection: sa.Connection, lease_id: str, status: state.ReservationStatus
) -> None:
    """Set the status of all reservations of a lease but those that are deleted."""
    table = models.Reservation
    statement = sa.update(table).where(
        table.lease_id == lease_id, table.status != state.ReservationStatus.DELETED
    )
    connection.execute(statement.values(status=status))


def update_reservation(
    connection: sa.Connection, reservation_id: str, **values: object
) -> None:
    """Store other values of a reservation, by column."""
    table = models.Reservation
    statement = sa.update(table).where(table.id == reservation_id)
    connection.execute(statement.values(**values))


def list_troubles(connection: sa.Connection) -> dict[str, str]:
    """Return why active leases are not as they should be, keyed by lease id."""
    table = models.Lease
    query = sa.select(table.id, table.status_reason).where(
        table.status == state.LeaseStatus.ACTIVE, table.status_reason.is_not(None)
    )
    return {row.id: row.status_reason for row in connection.execute(query)}


def count_degraded(connection: sa.Connection) -> int:
    """Return how many leases are degraded."""
    lease, reservation = models.Lease, models.Reservation
    lacking = sa.select(reservation.lease_id).where(reservation.lacks.is_not(None))
    query = sa.select(sa.func.count()).select_from(lease)
    query = query.where(lease.status_reason.is_not(None) | lease.id.in_(lacking))
    return connection.scalar(query) or 0


def delete(connection: sa.Connection, lease_id: str) -> None:
    """Delete a lease with all that belongs to it."""
    # Read first: MariaDB would read all slots, and wait for those being written.
    query = sa.select(models.Reservation.id)
    ids = connection.scalars(query.where(models.Reservation.lease_id == lease_id)).all()
    for part in (models.Allocation, models.InstanceReservation):
        storage.delete_each(connection, part.reservation_id, ids)
    for member in (models.Reservation, models.Event):
        connection.execute(sa.delete(member).where(member.lease_id == lease_id))
    connection.execute(sa.delete(models.Lease).where(models.Lease.id == lease_id))

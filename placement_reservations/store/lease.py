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

    size: Size
    amount: int
    affinity: bool | None = None
    resource_properties: str = ""


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
        return any(
            reservation.status != state.ReservationStatus.PENDING
            for reservation in self.reservations
        )

    def event(self, event_type: state.EventType) -> Event | None:
        """Return its event of a type, if it has one."""
        events = (event for event in self.events if event.event_type == event_type)
        return next(events, None)


def resource_class_of(reservation_id: str) -> str:
    """Return the resource class of the instances of a reservation."""
    return f"CUSTOM_RESERVATION_{reservation_id.upper().replace('-', '_')}"


def owner_of(lease: Lease) -> str:
    """Return the project that owns a lease."""
    return lease.project_id


def subject(lease_id: str) -> str:
    """Return the subject of a claim on a lease."""
    return f"lease:{lease_id}"


def id_of(claimed: str) -> str:
    """Return the id of the lease from the subject of a claim."""
    return claimed.partition(":")[2]


def list_leases(
    connection: sa.Connection, project_id: str | None = None
) -> list[Lease]:
    """Return leases, oldest first.

    :param project_id: None means all projects
    """
    query = sa.select(models.Lease)
    if project_id is not None:
        query = query.where(models.Lease.project_id == project_id)
    return _load(connection, query)


def list_by_status(connection: sa.Connection, status: state.LeaseStatus) -> list[Lease]:
    """Return the leases in a state, oldest first."""
    return _load(
        connection, sa.select(models.Lease).where(models.Lease.status == status)
    )


def list_unended(connection: sa.Connection, now: datetime.datetime) -> list[Lease]:
    """Return the leases whose end is still to come, oldest first."""
    query = sa.select(models.Lease).where(models.Lease.end_date > now)
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
            wish=row.load(Wish, each, size=row.load(Size, each)),
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
        wish = each.wish
        row.insert(connection, models.InstanceReservation, wish, wish.size, **ids)


def set_wish(connection: sa.Connection, reservation_id: str, wish: Wish) -> None:
    """Store the new wish of a reservation."""
    table = models.InstanceReservation
    changed = sa.update(table).where(table.reservation_id == reservation_id)
    connection.execute(changed.values(row.columns(table, wish, wish.size)))


def update(connection: sa.Connection, lease_id: str, **values: object) -> None:
    """Store other values of a lease, by column."""
    table = models.Lease
    connection.execute(sa.update(table).where(table.id == lease_id).values(**values))


def move(
    connection: sa.Connection,
    lease_id: str,
    target: state.LeaseStatus,
    sources: Iterable[state.LeaseStatus],
) -> bool:
    """Move a lease from any of several states to another; return whether it moved."""
    table = models.Lease
    statement = sa.update(table).where(
        table.id == lease_id, table.status.in_(list(sources))
    )
    moved = connection.execute(statement.values(status=target))
    return bool(moved.rowcount)


def set_reservation_status(
    connection: sa.Connection,
    lease_id: str,
    status: state.ReservationStatus,
    *only: str,
) -> None:
    """Set the status of the named reservations of a lease, or of all of them."""
    table = models.Reservation
    statement = sa.update(table).where(table.lease_id == lease_id)
    if only:
        statement = statement.where(table.id.in_(only))
    connection.execute(statement.values(status=status))


def set_condition(connection: sa.Connection, reservation: Reservation) -> None:
    """Store whether a reservation lacks slots, and whether others replaced them."""
    table = models.Reservation
    connection.execute(
        sa.update(table)
        .where(table.id == reservation.id)
        .values(
            lacks=reservation.lacks,
            resources_changed=reservation.resources_changed,
        )
    )


def set_trouble(
    connection: sa.Connection,
    lease_id: str,
    reason: str | None,
    *only: state.LeaseStatus,
) -> None:
    """Store why a lease is not as it should be; None if it is.

    :param only: the states in which it is stored; none means all
    """
    table = models.Lease
    statement = sa.update(table).where(table.id == lease_id)
    if only:
        statement = statement.where(table.status.in_(only))
    connection.execute(statement.values(status_reason=reason))


def list_troubles(
    connection: sa.Connection, status: state.LeaseStatus
) -> dict[str, str]:
    """Return why leases in a state are not as they should be, keyed by lease id."""
    table = models.Lease
    query = sa.select(table.id, table.status_reason)
    query = query.where(table.status == status, table.status_reason.is_not(None))
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

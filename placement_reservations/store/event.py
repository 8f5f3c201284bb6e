"""Events of leases: which are due, and which process runs one."""

import datetime
import uuid
from typing import Any

import sqlalchemy as sa

from placement_reservations import state
from placement_reservations.capacity import Interval
from placement_reservations.db import models
from placement_reservations.store import row
from placement_reservations.store.lease import Event, Lease

# The events of one lease happen in this order.
IN_A_LEASE = list(state.EventType)
# Among due events of several leases, a lease that ends makes room for one that starts.
AMONG_LEASES = [state.EventType.BEFORE_END, state.EventType.END, state.EventType.START]


def schedule(
    connection: sa.Connection,
    lease: Lease,
    interval: Interval,
    before_end: datetime.datetime | None,
) -> None:
    """Set the times of the events of a lease that is new, or gets another interval.

    :param before_end: None leaves it with the event before its end that it has, if any
    """
    times = {
        state.EventType.START: interval.start,
        state.EventType.BEFORE_END: before_end,
        state.EventType.END: interval.end,
    }
    for event_type, time in times.items():
        event = lease.event(event_type)
        if time is None or (event and event.time == time):
            continue
        undone = {"time": time, "status": state.EventStatus.UNDONE}
        if event:
            changed = sa.update(models.Event).where(models.Event.id == event.id)
            connection.execute(changed.values(undone))
        else:
            new = {"id": str(uuid.uuid4()), "event_type": event_type, **undone}
            row.insert(connection, models.Event, lease_id=lease.id, **new)


def list_due(connection: sa.Connection, now: datetime.datetime) -> list[Event]:
    """Return the next due event of each lease, in the order to run them."""
    table = models.Event
    query = sa.select(table).where(
        table.status == state.EventStatus.UNDONE, table.time <= now
    )
    first: dict[str, Event] = {}
    for event in _load(connection, query):
        earliest = first.setdefault(event.lease_id, event)
        if IN_A_LEASE.index(event.event_type) < IN_A_LEASE.index(earliest.event_type):
            first[event.lease_id] = event
    return sorted(
        first.values(),
        key=lambda event: (
            AMONG_LEASES.index(event.event_type),
            event.time,
            event.id,
        ),
    )


def _load(connection: sa.Connection, query: sa.Select[Any]) -> list[Event]:
    return [row.load(Event, each) for each in connection.execute(query).mappings()]


def list_failed_ends(
    connection: sa.Connection, before: datetime.datetime, now: datetime.datetime
) -> list[Event]:
    """Return the end events that failed, and were last tried before a time."""
    table = models.Event
    query = (
        sa.select(table)
        .join(models.Lease, models.Lease.id == table.lease_id)
        .where(
            table.event_type == state.EventType.END,
            table.status == state.EventStatus.ERROR,
            # A clock that was ahead may have been put right.
            (table.updated_at < before) | (table.updated_at > now),
            models.Lease.status == state.LeaseStatus.ERROR,
        )
        .order_by(table.time, table.id)
    )
    return _load(connection, query)


def close(
    connection: sa.Connection,
    event_id: str,
    outcome: state.EventStatus,
    now: datetime.datetime,
) -> None:
    """Record the outcome of an event that is over, or that will never happen."""
    table = models.Event
    statement = sa.update(table).where(
        table.id == event_id,
        table.status.in_([state.EventStatus.IN_PROGRESS, state.EventStatus.UNDONE]),
    )
    connection.execute(statement.values(status=outcome, updated_at=now))


def begin(
    connection: sa.Connection,
    event: Event,
    now: datetime.datetime,
    target: state.EventStatus = state.EventStatus.IN_PROGRESS,
) -> bool:
    """Begin an event that was due; return whether it still was.

    Only one of several processes that try gets True. All get False if the event was
    moved to another time meanwhile.
    """
    table = models.Event
    statement = sa.update(table).where(
        table.id == event.id, table.status == event.status, table.time <= now
    )
    begun = connection.execute(statement.values(status=target, updated_at=now))
    return bool(begun.rowcount)

"""Leases: listed, created, shown, changed, and deleted."""

import datetime

from placement_foundation import errors
from placement_foundation.http.operation import Connection, Reply, reading
from placement_reservations import clock
from placement_reservations.capacity import Interval
from placement_reservations.handlers.call import Call, project_of, world_of
from placement_reservations.lifecycle import (
    change,
    creation,
    notice,
    opening,
    termination,
    turn,
)
from placement_reservations.schemas import free, moment
from placement_reservations.schemas import lease as wire
from placement_reservations.store import lease as leases
from placement_reservations.store.lease import Lease
from placement_reservations.world import World

# How far free times are looked for by default, and how many an answer has at most.
SEARCHED = datetime.timedelta(days=30)
MOST_FREE = 50


@reading
def list_leases(call: Call[None], connection: Connection) -> Reply:
    """List leases: administrators see all, others those of their project."""
    project = project_of(call, "reservation:leases:list_all")
    return Reply(leases.list_leases(connection, project))


@reading
def show_lease(call: Call[None], connection: Connection) -> Reply:
    """Show a lease."""
    return Reply(call.load(connection))


@reading
def list_free(call: Call[None], connection: Connection) -> Reply:
    """List the times at which a lease could start.

    :raises BadRequest: a time is not valid, or all requested times are in the past
    """
    world = world_of(call)
    query: free.FreeQuery = call.query
    window = _window(query, world.clock.now())
    room = opening.load(connection, world, [query.wish], window, query.duration)
    found = opening.search(room, window, MOST_FREE)
    return Reply((found, room.explain(window.start)))


def _window(asked: free.FreeQuery, now: datetime.datetime) -> Interval:
    # No lease can start in the past.
    start = max(
        moment.parse(asked.start or moment.NOW, now, "start_date"),
        clock.whole_minute(now),
    )
    end = start + SEARCHED
    if asked.end is not None:
        end = moment.parse_coming(asked.end, now, "end_date")
    if end < start:
        raise errors.BadRequest("end_date must not be before start_date.")
    return Interval(start, end)


def create_lease(call: Call[None]) -> Reply:
    """Create a lease, and start it if its time has come.

    :raises BadRequest: a time or a reservation is not valid
    """
    world = world_of(call)
    now = world.clock.now()
    interval = wire.parse_interval(call.body, now)
    before_end = notice.by_default(world, interval)
    if call.body.get("before_end_date") is not None:
        text = call.body["before_end_date"]
        time = moment.parse(text, now, "before_end_date")
        before_end = notice.check(interval, time)
    asking = call.asking
    lease = creation.draft(
        call.body["name"],
        (asking and asking.user_id) or "",
        (asking and asking.project_id) or "",
        interval,
        wire.parse_wishes(call.body["reservations"]),
    )
    creation.create(world, lease, before_end)
    return _started(world, lease.id, created=True)


def update_lease(call: Call[None]) -> Reply:
    """Change a lease, and start it if its time has come.

    :raises BadRequest: the change is not valid
    """
    lease: Lease = call.read(call.load)
    world = world_of(call)
    update = wire.parse_update(call.body, world.clock.now())
    change.update(world, lease.id, update)
    return _started(world, lease.id)


def _started(world: World, lease_id: str, *, created: bool = False) -> Reply:
    turn.start_now(world, lease_id)
    lease = world.database.read(lambda connection: leases.get(connection, lease_id))
    return Reply(lease, created=created)


def delete_lease(call: Call[None]) -> Reply:
    """End a lease if it has started, and delete it."""
    lease: Lease = call.read(call.load)
    termination.delete(world_of(call), lease.id)
    return Reply()

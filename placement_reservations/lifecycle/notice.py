"""The time at which a lease has its event before the end."""

import datetime

from placement_foundation import errors
from placement_reservations import state
from placement_reservations.capacity import Interval
from placement_reservations.store.lease import Lease
from placement_reservations.world import World


def by_default(world: World, interval: Interval) -> datetime.datetime | None:
    """Return the default time of the event; None for no event."""
    if not world.rules.notice:
        return None
    return max(interval.start, interval.end - world.rules.notice)


def check(interval: Interval, before_end: datetime.datetime) -> datetime.datetime:
    """Return a requested time of the event.

    :raises BadRequest: it is not within the lease
    """
    if not interval.start <= before_end <= interval.end:
        raise errors.BadRequest(
            "before_end_date must be between the start and the end of the lease."
        )
    return before_end


def aim(
    world: World, lease: Lease, interval: Interval, wanted: datetime.datetime | None
) -> datetime.datetime | None:
    """Return the time of the event of a lease whose interval changes.

    Unless a time is requested, it moves with the end.

    :raises BadRequest: the requested time is not within the lease
    """
    if wanted is not None:
        return check(interval, wanted)
    event = lease.event(state.EventType.BEFORE_END)
    if event is None:
        return None
    if interval == lease.interval:
        return event.time
    if event.time == by_default(world, lease.interval):
        return by_default(world, interval)
    # At most the length of the lease: an earlier time may be out of range.
    ahead = min(lease.interval.end - event.time, interval.end - interval.start)
    return interval.end - ahead

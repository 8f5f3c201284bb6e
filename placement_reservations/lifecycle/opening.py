"""When a lease could start: the times at which there is room for all of it."""

import dataclasses
import datetime
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import sqlalchemy as sa

from placement_reservations import capacity
from placement_reservations.capacity import Holding, Interval, NotEnough
from placement_reservations.lifecycle import selection
from placement_reservations.requirement import Requirement
from placement_reservations.store import allocation as allocations
from placement_reservations.store import host as hosts
from placement_reservations.store.host import Host
from placement_reservations.store.lease import Reservation, Wish
from placement_reservations.world import World

# Times are whole minutes.
STEP = datetime.timedelta(minutes=1)
# The most changes of promises that are examined, for all reservations of a lease
# together. Each may open or close a time.
MOST_CHANGES = 1000
# The most times that are tried for several reservations, which takes long.
MOST_TRIALS = 50


@dataclasses.dataclass(frozen=True, slots=True)
class Opening:
    """A lease of a length can start at these times, and at any in between."""

    first: datetime.datetime
    last: datetime.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class Room:
    """The hosts, the promises on them, and a lease to find room for.

    Its ``duration`` includes the cleaning after it.
    """

    hosts: Sequence[Host]
    holdings: Sequence[Holding]
    wanted: Sequence[tuple[Reservation, Requirement]]
    duration: datetime.timedelta

    def explain(self, start: datetime.datetime) -> str | None:
        """Return what hosts lack if the lease starts at a time; None if it fits."""
        refusal = self.refuse(start)
        return refusal and refusal()

    def refuse(self, start: datetime.datetime) -> Callable[[], str] | None:
        """Return what explains why the lease does not fit at a time; None if it does.

        An explanation takes longer, as it looks at all hosts.
        """
        interval = Interval(start, start + self.duration)
        chosen = selection.Selection(self.hosts, self.holdings, interval)
        for reservation, required in self.wanted:
            try:
                chosen.choose(reservation, required)
            except NotEnough:
                return partial(chosen.explain, reservation, required)
        return None

    def list_changes(
        self, window: Interval
    ) -> list[tuple[datetime.datetime, set[int]]]:
        """Return the first start, and each at which a promise begins or ends to count.

        Each has the hosts of these promises. Between two starts nothing changes.
        """
        changes: dict[datetime.datetime, set[int]] = {window.start: set()}
        ahead = self.duration - STEP
        for held in self.holdings:
            times = [held.interval.end]
            # Before it, the lease is over when this promise begins. There may be no
            # such time: a lease may last longer than there have been years.
            if held.interval.start - window.start >= ahead:
                times.append(held.interval.start - ahead)
            for time in times:
                if window.start <= time <= window.end:
                    changes.setdefault(time, set()).add(held.host_id)
        return sorted(changes.items(), key=lambda change: change[0])


def load(
    connection: sa.Connection,
    world: World,
    wishes: Sequence[Wish],
    window: Interval,
    duration: datetime.timedelta,
) -> Room:
    """Return the room for a lease that starts within a window.

    :raises BadRequest: a requirement on hosts is not valid
    """
    wanted = [
        (
            Reservation(str(number), "", "", wish),
            selection.parse_requirement(connection, wish.resource_properties),
        )
        for number, wish in enumerate(wishes)
    ]
    cleaning = world.rules.cleaning
    return Room(
        hosts.list_hosts(connection),
        allocations.list_every(connection, cleaning, world.clock.now()),
        wanted,
        duration + cleaning,
    )


def _spans(room: Room, window: Interval) -> Iterator[tuple[Opening, bool]]:
    """Yield, in order, times between which nothing changes, and whether they are free.

    They cover the window, unless too much changes in it: then they end earlier.
    """
    changes = room.list_changes(window)
    ends = [*(time for time, _ in changes[1:]), window.end + STEP]
    held = capacity.by_host(room.holdings)
    # For each reservation, the room on suitable hosts, and the slots that they have for
    # it alone. Only hosts on which something has changed are counted again.
    parts = [
        (
            each.wish,
            selection.suitable(room.hosts, required, each.wish.size),
            dict[int, int](),
        )
        for each, required in room.wanted
    ]
    most = max(1, MOST_CHANGES // len(parts))
    trials = 0
    for (time, host_ids), end in zip(changes[:most], ends, strict=False):
        interval = Interval(time, time + room.duration)
        for wish, sizes, counts in parts:
            for host_id in sizes.keys() & host_ids if counts else sizes:
                there = held.get(host_id, ())
                counts[host_id] = capacity.count_free(
                    sizes[host_id], there, interval, wish.size
                )
        is_free = all(
            selection.count_usable(counts.values(), wish) >= wish.amount
            for wish, _, counts in parts
        )
        if is_free and len(parts) > 1:
            if trials == MOST_TRIALS:
                return
            trials += 1
            is_free = room.refuse(time) is None
        yield Opening(time, end - STEP), is_free


@dataclasses.dataclass(frozen=True, slots=True)
class Search:
    """Times at which a lease could start, in order.

    Times after ``until`` have not been searched.
    """

    openings: Sequence[Opening]
    until: datetime.datetime


def search(room: Room, window: Interval, most: int) -> Search:
    """Look for times within a window at which a lease could start.

    :param most: the number of openings after which the search ends
    """
    openings: list[Opening] = []
    begun: datetime.datetime | None = None
    until = window.start
    for span, is_free in _spans(room, window):
        if is_free:
            begun = begun or span.first
        elif begun:
            openings.append(Opening(begun, until))
            begun = None
            if len(openings) == most:
                return Search(openings, until)
        until = span.last
    if begun:
        openings.append(Opening(begun, until))
    return Search(openings, until)

"""When a lease could start: the times at which there is room for all of it."""

import dataclasses
import datetime
from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from placement_foundation import errors
from placement_reservations.capacity import Holding, Interval
from placement_reservations.lifecycle import selection
from placement_reservations.requirement import Requirement
from placement_reservations.store import allocation as allocations
from placement_reservations.store import host as hosts
from placement_reservations.store.host import Host
from placement_reservations.store.lease import Reservation, Wish
from placement_reservations.world import World

# Times are whole minutes.
STEP = datetime.timedelta(minutes=1)
# So many changes of what is promised are looked at. Each may open or close a time.
MOST_CHANGES = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Opening:
    """A lease of a length can start at these times, and at any in between."""

    first: datetime.datetime
    last: datetime.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class Room:
    """The hosts, what is promised on them, and a lease to find room for."""

    hosts: Sequence[Host]
    holdings: Sequence[Holding]
    cleaning: datetime.timedelta
    wanted: Sequence[tuple[Reservation, Requirement]]
    duration: datetime.timedelta

    def is_free(self, start: datetime.datetime) -> bool:
        """Return whether all of the lease fits if it starts at a time."""
        chosen = self._selection(start)
        return self._find_refused(chosen) is None

    def explain(self, start: datetime.datetime) -> str | None:
        """Return what hosts lack if the lease starts at a time; None if it fits."""
        chosen = self._selection(start)
        refused = self._find_refused(chosen)
        return None if refused is None else chosen.explain(*refused)

    def _selection(self, start: datetime.datetime) -> selection.Selection:
        interval = Interval(start, start + self.duration)
        return selection.Selection(self.hosts, self.holdings, interval, self.cleaning)

    def _find_refused(
        self, chosen: selection.Selection
    ) -> tuple[Reservation, Requirement] | None:
        """Return the first reservation that gets no slots."""
        for reservation, required in self.wanted:
            try:
                chosen.choose(reservation, required)
            except errors.Conflict:
                return reservation, required
        return None

    def list_changes(self, window: Interval) -> list[datetime.datetime]:
        """Return the first start, and each at which a promise begins or ends to count.

        Between two of them nothing changes.
        """
        times = {window.start}
        ahead = self.cleaning + self.duration - STEP
        for held in self.holdings:
            times.add(held.interval.end + self.cleaning)
            # Before it, the lease is over when this promise begins. There may be no
            # such time: a lease may last longer than there have been years.
            if held.interval.start - window.start >= ahead:
                times.add(held.interval.start - ahead)
        return sorted(time for time in times if window.start <= time <= window.end)


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
    reach = Interval(window.start, window.end + duration + STEP)
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
        allocations.list_holdings(connection, reach, cleaning),
        cleaning,
        wanted,
        duration,
    )


def openings(room: Room, window: Interval) -> Iterator[Opening]:
    """Yield the times within a window at which a lease could start, in order."""
    changes = room.list_changes(window)
    # Nothing is known of what follows the last change that is looked at.
    more = changes[MOST_CHANGES:]
    end = more[0] - STEP if more else window.end
    begun: datetime.datetime | None = None
    for change in changes[:MOST_CHANGES]:
        if room.is_free(change):
            begun = begun or change
        elif begun:
            yield Opening(begun, change - STEP)
            begun = None
    if begun:
        yield Opening(begun, end)

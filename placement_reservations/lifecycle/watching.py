"""Shifts of the watch: one process at a time checks all hosts, once in an interval."""

import datetime
import uuid
from typing import Self

import sqlalchemy as sa

from placement_reservations.store import watch as watches
from placement_reservations.store.watch import Watch
from placement_reservations.world import World

NO_GRACE = datetime.timedelta()


class Shift:
    """This process checks all hosts; until it has, no other process begins to.

    Others take it for dead if it has not gone on for an interval. If it goes on after
    that, work is done twice, and nothing else happens.
    """

    def __init__(self, world: World, mine: Watch) -> None:
        self._world = world
        self._mine = mine
        self._renewed = self._began = world.clock.now()

    @classmethod
    def begin(cls, world: World, grace: datetime.timedelta = NO_GRACE) -> Self | None:
        """Begin, if it is time to, and no other process has begun.

        :param grace: for how long others may go first when it is time
        """
        now = world.clock.now()
        # As a rule it is not time yet, and nothing has to be written.
        if not _is_due(world, world.database.read(watches.find), now, grace):
            return None

        def take(connection: sa.Connection) -> Watch | None:
            last = watches.find(connection)
            if not _is_due(world, last, now, grace):
                return None
            overused = last.slots_overused if last else 0
            mine = Watch(str(uuid.uuid4()), now + world.rules.watch, overused)
            return mine if watches.replace(connection, last, mine) else None

        mine = world.database.write(take)
        return cls(world, mine) if mine else None

    def go_on(self) -> None:
        """Say that this process is still at it."""
        now, interval = self._world.clock.now(), self._world.rules.watch
        if abs(now - self._renewed) >= interval / 4:
            self._renewed = now
            self._store(now + interval)

    def end(self, slots_overused: int | None) -> bool:
        """Let the next one begin when the interval is over.

        :param slots_overused: how many servers use more than was promised, if known
        :returns: whether no other process had begun
        """
        return self._store(self._began + self._world.rules.watch, slots_overused)

    def _store(
        self, next_at: datetime.datetime, slots_overused: int | None = None
    ) -> bool:
        last = self._mine.slots_overused
        overused = last if slots_overused is None else slots_overused
        mine = Watch(self._mine.holder, next_at, overused)
        return self._world.database.write(
            lambda connection: watches.replace(connection, mine, mine)
        )


def _is_due(
    world: World,
    last: Watch | None,
    now: datetime.datetime,
    grace: datetime.timedelta,
) -> bool:
    if last is None:
        return True
    # A clock that was set back does not stop it.
    return not now - grace < last.next_at <= now + world.rules.watch

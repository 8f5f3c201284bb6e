"""Work beside requests that takes a small part of the time."""

import time
from collections.abc import Callable

import sqlalchemy as sa

from placement_foundation.database.storage import Database

# How often there is something to do, in seconds.
EVERY = 5
# The least pause after a piece of work, as a multiple of the time that it took: so it
# takes a hundredth of the time at most.
REST = 99


class Watch:
    """Does pieces of work on a database, each in a transaction that reads.

    :param work: does one piece
    :param clock: returns the time, in seconds
    """

    def __init__(
        self,
        database: Database,
        work: Callable[[sa.Connection], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._work = work
        self._clock = clock
        self._next = clock()

    def look(self) -> None:
        """Do a piece of the work, unless it is too soon."""
        before = self._clock()
        if before < self._next:
            return
        try:
            self._database.look(self._work)
        finally:
            after = self._clock()
            self._next = after + REST * (after - before)

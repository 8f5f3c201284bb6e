"""The state of a database's journal in one process."""

import contextlib
import threading
from collections.abc import Callable, Iterator

from placement import measure
from placement_foundation.database.storage import Database
from placement_foundation.observing import telemetry


class Keeper:
    """The journal of a database, as one process keeps it.

    ``missed`` counts changes without an entry, and ``recorded`` is the part of them
    that gaps in the journal cover.

    :param days: for how many days entries are kept
    :param most_waiting: returns how many readers may wait for entries at a time
    """

    def __init__(
        self, database: Database, days: int, most_waiting: Callable[[], int] = int
    ) -> None:
        self.database = database
        self.days = days
        self.missed = self.recorded = self.waiting = 0
        # When the next gap may be recorded, by the monotonic clock.
        self.next_gap = -float("inf")
        self._most_waiting = most_waiting
        self._lock = threading.Lock()

    @property
    def has_missed(self) -> bool:
        """Whether there were changes that no entry and no gap covers."""
        return self.missed > self.recorded

    def miss(self) -> None:
        """Count a change that was committed without an entry."""
        with self._lock:
            self.missed += 1

    def catch_up(self, missed: int) -> None:
        """Forget changes without an entry: a gap that covers them was committed.

        :param missed: the count of them before the gap was stored
        """
        with self._lock:
            self.recorded = max(self.recorded, missed)

    @contextlib.contextmanager
    def waiting_place(self) -> Iterator[bool]:
        """Take a place among the waiting readers; yield whether one was free."""
        with self._lock:
            is_free = self.waiting < self._most_waiting()
            self.waiting += is_free
        telemetry.record(measure.JOURNAL_READERS, +is_free)
        try:
            yield is_free
        finally:
            with self._lock:
                self.waiting -= is_free
            telemetry.record(measure.JOURNAL_READERS, -is_free)

"""Waiting for new entries, with one question to the database for all who wait."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from placement import measure
from placement_foundation import ending
from placement_foundation.observing import telemetry

# How often a process looks for news while a reader waits, in seconds.
LOOK_EVERY = 0.5


class News:
    """The readers of one process that wait for news.

    Nothing runs while none waits. One of those who wait looks for all of them; none has
    a connection while it waits.

    :param most: returns how many may wait at a time
    """

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._newest = -1
        self._next_look = 0.0
        self._is_looking = False
        self.waiting = 0

    @contextlib.contextmanager
    def place(self) -> Iterator[bool]:
        """Take a place among those who wait; give whether there was one."""
        with self._changed:
            is_free = self.waiting < self._most()
            self.waiting += is_free
        telemetry.record(measure.JOURNAL_READERS, +is_free)
        try:
            yield is_free
        finally:
            with self._changed:
                self.waiting -= is_free
            telemetry.record(measure.JOURNAL_READERS, -is_free)

    def wait(self, position: int, look: Callable[[], int], deadline: float) -> bool:
        """Wait until there is news or the time is over; return whether there is news.

        The time is also over when the process is about to end.

        :param position: what the reader knows already
        :param look: asks the database for the newest position; only one reader does
        :param deadline: a time of ``time.monotonic``
        """
        # What was found before this reader came may be from before a restore.
        self._newest = min(self._newest, position)
        while time.monotonic() < deadline and not ending.is_near():
            if self._newest > position:
                return True
            if self._may_look():
                self._look(look)
            else:
                self._pause(deadline)
        return False

    def _pause(self, deadline: float) -> None:
        with self._changed:
            until = min(deadline, self._next_look)
            self._changed.wait(max(0.01, until - time.monotonic()))

    def _may_look(self) -> bool:
        """Return whether it is time to look, and this thread is the one that does."""
        with self._changed:
            if self._is_looking or time.monotonic() < self._next_look:
                return False
            self._is_looking = True
            return True

    def _look(self, look: Callable[[], int]) -> None:
        found = self._newest
        try:
            found = look()
        finally:
            with self._changed:
                self._is_looking = False
                self._next_look = time.monotonic() + LOOK_EVERY
                self._newest = found
                self._changed.notify_all()

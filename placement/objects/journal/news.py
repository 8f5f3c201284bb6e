"""Waiting for new entries, with one question to the database for all who wait."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

# How often a process looks for news while somebody waits, in seconds.
LOOK_EVERY = 0.5


class News:
    """The readers of one process that wait for news.

    Nothing runs while none waits. One of those who wait looks for all of them; none has
    a connection while it waits.

    :param most: how many may wait at a time
    """

    def __init__(self, most: int) -> None:
        self._places = threading.BoundedSemaphore(most) if most else None
        self._changed = threading.Condition()
        self._count = 0
        self._waiting = 0
        self._next_look = 0.0
        self._is_looking = False

    @property
    def waiting(self) -> int:
        """How many readers wait."""
        return self._waiting

    @contextlib.contextmanager
    def place(self) -> Iterator[bool]:
        """Take a place among those who wait; give whether there was one."""
        taken = bool(self._places and self._places.acquire(blocking=False))
        self._add(int(taken))
        try:
            yield taken
        finally:
            self._add(-int(taken))
            if taken and self._places:
                self._places.release()

    def _add(self, number: int) -> None:
        with self._changed:
            self._waiting += number

    def wait(self, has_news: Callable[[], bool], deadline: float) -> bool:
        """Wait until there is news or the time is over; return whether there is news.

        :param has_news: asks the database; only one of those who wait does
        :param deadline: a time of ``time.monotonic``
        """
        with self._changed:
            seen = self._count
        while True:
            now = time.monotonic()
            if self._count != seen:
                return True
            if now >= deadline:
                return False
            if self._may_look(now):
                self._look(has_news)
                continue
            with self._changed:
                if self._count == seen:
                    until = min(deadline, max(self._next_look, now + 0.01))
                    self._changed.wait(until - now)

    def _may_look(self, now: float) -> bool:
        """Return whether it is time to look, and this thread is the one that does."""
        with self._changed:
            if self._is_looking or now < self._next_look:
                return False
            self._is_looking = True
            return True

    def _look(self, has_news: Callable[[], bool]) -> None:
        found = False
        try:
            found = has_news()
        finally:
            with self._changed:
                self._is_looking = False
                self._next_look = time.monotonic() + LOOK_EVERY
                self._count += found
                self._changed.notify_all()

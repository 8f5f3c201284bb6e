"""Limits on a process's threads, so that slow work leaves some for all other work."""

import contextlib
import importlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator

from placement_foundation import errors

# For web servers that do not say how many threads they give to a process: the fewest
# with which one may wait.
ASSUMED = 2

_own_count = 0


def announce_threads(count: int) -> None:
    """Record how many threads serve requests in this process: its server knows."""
    global _own_count
    _own_count = count


def count_threads() -> int:
    """Return how many threads serve requests in this process, as far as is known."""
    return _own_count or _count_of_uwsgi() or _count_of_mod_wsgi() or ASSUMED


def _count_of_uwsgi() -> int:
    """Return the number of threads of a process of uWSGI, 0 if this is none."""
    try:
        # It exists only inside of such a process.
        options = importlib.import_module("uwsgi").opt
    except (ImportError, AttributeError):
        return 0
    # Without the option, a process has one thread.
    value = options.get("threads", options.get(b"threads", 1))
    return int(value) if str(value).isdecimal() or isinstance(value, bytes) else 1


def _count_of_mod_wsgi() -> int:
    """Return the number of threads of a process of mod_wsgi, 0 if this is none."""
    try:
        module = importlib.import_module("mod_wsgi")
        return int(module.threads_per_process)
    except (ImportError, AttributeError):
        return 0


class ThreadLimit:
    """A number of threads that one kind of work may occupy at a time.

    :param part: the limit is one such part of the threads of the process, and at least
        one thread
    :param most: the limit as a number instead
    :param patience: how long to wait for one of these threads, in seconds, counted
        from when the work began that has been going on for longest: quick work waits
        for its turn, and nothing waits for work that hangs
    """

    def __init__(
        self, part: int, most: int | None = None, patience: float = 0.0
    ) -> None:
        self._part = part
        self._most = most
        self._patience = patience
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        # When each piece of work began, by number, oldest first.
        self._began: dict[int, float] = {}

    @property
    def most(self) -> int:
        """How many threads it has."""
        return self._most or max(1, count_threads() // self._part)

    def take(self, complaint: str) -> Callable[[], None]:
        """Occupy a thread; return what ends that, however often it is called.

        :param complaint: what to say if no thread is left
        :raises Busy: all of them are occupied
        """
        with self._changed:
            while len(self._began) >= self.most:
                oldest = next(iter(self._began.values()))
                left = oldest + self._patience - time.monotonic()
                if left <= 0:
                    raise errors.Busy(complaint)
                self._changed.wait(left)
            number = next(self._numbers)
            self._began[number] = time.monotonic()
        return lambda: self._release(number)

    @contextlib.contextmanager
    def turn(self, complaint: str) -> Iterator[None]:
        """Occupy a thread while the context is open.

        :raises Busy: all of them are occupied
        """
        release = self.take(complaint)
        try:
            yield
        finally:
            release()

    def _release(self, number: int) -> None:
        with self._changed:
            self._began.pop(number, None)
            self._changed.notify()

"""Limits on a process's threads, so that slow work leaves some for all other work."""

import contextlib
import importlib
import threading
import time
from collections.abc import Iterator

from placement_foundation import errors

# For web servers that do not announce the number of threads of a process: the fewest
# with which one may wait.
ASSUMED = 2

_own_count = 0


def announce_threads(count: int) -> None:
    """Record how many threads serve requests in this process, for its server."""
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
    """A part of the threads that one kind of work may occupy at a time, at least one.

    :param part: how many such parts the threads of the process have
    :param patience: how long to wait for one of these threads, in seconds, counted
        from when the work began that has been going on for longest: quick work waits
        for its turn, and nothing waits for work that hangs
    """

    def __init__(self, part: int, patience: float) -> None:
        self._part = part
        self._patience = patience
        self._changed = threading.Condition()
        # When each piece of work began, oldest first.
        self._began: list[float] = []

    @contextlib.contextmanager
    def turn(self, complaint: str) -> Iterator[None]:
        """Occupy a thread while the context is open.

        :param complaint: the message if no thread is left
        :raises Busy: all of them are occupied
        """
        with self._changed:
            while len(self._began) >= max(1, count_threads() // self._part):
                left = self._began[0] + self._patience - time.monotonic()
                if left <= 0:
                    raise errors.Busy(complaint)
                self._changed.wait(left)
            began = time.monotonic()
            self._began.append(began)
        try:
            yield
        finally:
            with self._changed:
                self._began.remove(began)
                self._changed.notify()

"""Precedence in a process: short requests go first, work that takes long gives way.

The threads of a process share one interpreter, so what computes for seconds takes time
from each request that is answered meanwhile. It cannot be interrupted, but it can rest
now and then: all such work together gets a part of a processor while requests are being
answered, and whatever there is otherwise.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TypeVar

# How long work computes before it rests, and what is counted at most, in seconds of
# processor time: while no request was being answered, there was nothing to wait for.
SLICE = 0.002
MOST_COUNTED = 0.02
# How much longer than it computes all work together rests.
REST = 15
# After how long a piece of work has rested enough, in seconds: its caller waits, too.
MOST_RESTED = 10


T = TypeVar("T")


class Precedence:
    """Knows the requests in progress, and lets work that takes long rest for them.

    :param computed: returns the processor time that the thread has used, in seconds
    """

    def __init__(
        self,
        computed: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._computed = computed
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._short = 0
        # When all work has rested for what it has computed.
        self._rested_at = 0.0
        self._here = _Here()

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Serve a request in this thread: a short one, as far as is known."""
        here = self._here
        if here.is_short:
            # A service that calls another one in the same process, as part of it.
            yield
            return
        outer, here.is_short = (here.since, here.until), True
        self._count(1)
        try:
            yield
        finally:
            if here.is_short:
                here.is_short = False
                self._count(-1)
            here.since, here.until = outer

    def stand_back(self) -> None:
        """Let all others go first: this thread's request takes long, or waits."""
        if self._here.is_short:
            self._here.is_short = False
            self._here.since = self._computed()
            self._here.until = self._clock() + MOST_RESTED
            self._count(-1)

    def rest_within(self, seconds: float) -> None:
        """Let this thread's work rest for no longer than some seconds from now on."""
        self._here.until = min(self._here.until, self._clock() + seconds)

    def hurry(self) -> contextlib.AbstractContextManager[None]:
        """Do what others wait for without a rest, such as a transaction."""
        rests = self._here.since is not None
        return self._without_rest() if rests else contextlib.nullcontext()

    @contextlib.contextmanager
    def _without_rest(self) -> Iterator[None]:
        self._here.since = None
        try:
            yield
        finally:
            self._here.since = self._computed()

    def give_way(self) -> None:
        """Rest if others go first; to be called again and again by what takes long."""
        since = self._here.since
        if since is None or not self._short:
            return
        computed = self._computed() - since
        if computed < SLICE:
            return
        now, until = self._clock(), self._here.until
        if now >= until:
            return
        with self._lock:
            rest = REST * min(computed, MOST_COUNTED)
            self._rested_at = max(now, self._rested_at) + rest
            pause = self._rested_at - now
        self._sleep(min(pause, until - now))
        self._here.since = self._computed()

    def rest_between(self, items: Iterable[T]) -> Generator[T, None, None]:
        """Yield things, and give way before each."""
        for each in items:
            self.give_way()
            yield each

    def _count(self, change: int) -> None:
        with self._lock:
            self._short += change


class _Here(threading.local):
    """What is known about the work of this thread.

    ``since`` is the processor time when it last rested, None if it does not rest;
    ``until`` is when it has rested enough.
    """

    is_short = False
    since: float | None = None
    until = 0.0


# The threads of a process share its interpreter, whatever they serve.
_of_process = Precedence()
request = _of_process.request
stand_back = _of_process.stand_back
rest_within = _of_process.rest_within
hurry = _of_process.hurry
give_way = _of_process.give_way
rest_between = _of_process.rest_between

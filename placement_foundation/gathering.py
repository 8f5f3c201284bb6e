"""Group commit: one of several waiting threads does the work of all of them.

While one group is served, the next one gathers. Clients that wait for their answers
come back soon after them, so each of two groups would have half of the clients for
ever. The first thread of a group therefore waits for as many as the last group had.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

# The most items that are served at a time.
MOST = 32
# How long the first thread of a group waits for others, if there were any lately; and
# how long a thread waits for its group before it goes alone, since a group may have to
# wait for a lock. Both are in seconds.
LINGER = 0.005
PATIENCE = 0.05


class _Seat(Generic[T, R]):
    """The item of one thread, and its result."""

    def __init__(self, item: T) -> None:
        self.item = item
        self.is_taken = self.is_done = False
        self.result: R | None = None


class Gathering(Generic[T, R]):
    """A place where threads with items of one kind form groups."""

    def __init__(self, linger: float = LINGER, patience: float = PATIENCE) -> None:
        self._linger = linger
        self._patience = patience
        self._changed = threading.Condition()
        self._waiting: list[_Seat[T, R]] = []
        self._is_serving = False
        # The number of threads in and after the last group: the next may have as many.
        self._expected = 1

    def do(
        self, item: T, serve: Callable[[Sequence[T]], Sequence[R | None]]
    ) -> R | None:
        """Serve an item together with those of other threads; return its result.

        None means that the item was not served, because it waited too long for its turn
        or another thread failed to serve it; or None is its result.

        :param serve: returns the results of some items, each a result or None; for a
            group, the function of one of its threads is called
        :raises Exception: what this thread's ``serve`` has raised
        """
        seat = _Seat[T, R](item)
        with self._changed:
            group = self._join(seat)
        if group:
            self._serve(group, serve)
        return seat.result

    def _join(self, seat: _Seat[T, R]) -> list[_Seat[T, R]]:
        """Wait until others have served a seat, or return the group to serve.

        The group is also empty if the wait takes too long.
        """
        self._waiting.append(seat)
        self._changed.notify_all()
        self._changed.wait_for(
            lambda: seat.is_taken or not self._is_serving, self._patience
        )
        if seat.is_taken:
            self._changed.wait_for(lambda: seat.is_done)
            return []
        if self._is_serving:
            self._waiting.remove(seat)
            return []
        self._is_serving = True
        self._changed.wait_for(
            lambda: len(self._waiting) >= self._expected, self._linger
        )
        self._waiting.remove(seat)
        group = [seat, *self._waiting[: MOST - 1]]
        del self._waiting[: MOST - 1]
        for each in group:
            each.is_taken = True
        return group

    def _serve(
        self,
        group: Sequence[_Seat[T, R]],
        serve: Callable[[Sequence[T]], Sequence[R | None]],
    ) -> None:
        try:
            results = serve([each.item for each in group])
            for each, result in zip(group, results, strict=True):
                each.result = result
        finally:
            with self._changed:
                self._is_serving = False
                self._expected = min(len(group) + len(self._waiting), MOST)
                for each in group:
                    each.is_done = True
                self._changed.notify_all()

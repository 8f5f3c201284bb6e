"""Concurrent calls."""

import contextlib
import gc
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tests.client import Answer

T = TypeVar("T")


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Make calls from threads that start together, and return what they return."""
    barrier = threading.Barrier(len(calls))

    def meet(call: Callable[[], T]) -> T:
        barrier.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(meet, calls))


@contextlib.contextmanager
def ended() -> Iterator[None]:
    """Wait, at the end, for threads that began here, such as the chores of a service.

    What began them must no longer be referred to by then.
    """
    before = set(threading.enumerate())
    try:
        yield
    finally:
        gc.collect()
        for thread in set(threading.enumerate()) - before:
            # A timer has nothing to do any more.
            if not isinstance(thread, threading.Timer):
                thread.join(10)


def statuses(answers: Sequence[Answer]) -> Counter[int]:
    return Counter(answer.status for answer in answers)

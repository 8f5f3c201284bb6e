"""Work that a service does again and again, beside its requests."""

import os
import random
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import NamedTuple

from oslo_log import log

LOG = log.getLogger(__name__)

# Forked processes draw different numbers from it, and disturb no other sequence.
_chance = random.SystemRandom()


class Chore(NamedTuple):
    """Something to do every so many seconds, more or less.

    Every process does it, so the work has to find out whether it is this one's turn.
    """

    name: str
    work: Callable[[], object]
    every: float


class Chores:
    """Does chores in threads of each process that serves, requests or not.

    A server may fork after it has loaded the application, and threads would stay
    behind. So they begin after a fork, or with the first request, which calls
    ``start``. They end when nothing refers to this any more.
    """

    def __init__(self, chores: Sequence[Chore]) -> None:
        self._chores = chores
        # What began them, by process.
        self._beginnings: dict[int, object] = {}
        self._ended = threading.Event()
        weakref.finalize(self, self._ended.set)
        # Without a reference to this, which would keep it.
        reference = weakref.WeakMethod(self.start)

        def begin_in_child() -> None:
            if start := reference():
                start()

        os.register_at_fork(after_in_child=begin_in_child)

    def start(self) -> None:
        """Begin with the chores, if this process has not done so yet."""
        # One step instead of a lock, which a thread that a fork lacks might hold.
        beginning = object()
        if self._beginnings.setdefault(os.getpid(), beginning) is not beginning:
            return
        for chore in self._chores:
            threading.Thread(
                target=_repeat, args=[chore, self._ended], name=chore.name, daemon=True
            ).start()


def _repeat(chore: Chore, ended: threading.Event) -> None:
    """Do a chore until the end. A failure is logged once, until the next success."""
    has_failed = False
    # Processes that began together should not stay in step.
    while not ended.wait(chore.every * _chance.uniform(0.5, 1.5)):
        try:
            chore.work()
            has_failed = False
        except Exception as exc:
            if not has_failed:
                LOG.warning("%s failed: %s", chore.name, exc)
            has_failed = True

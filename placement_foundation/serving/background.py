"""Work that a service does again and again, beside its requests."""

import os
import random
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import NamedTuple

from oslo_log import log

LOG = log.getLogger(__name__)


# A generator of its own, so that its draws do not disturb other sequences of numbers.
_chance = random.Random()
# Otherwise all forked processes would draw the same numbers.
os.register_at_fork(after_in_child=_chance.seed)


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
        self._process = 0
        self._starting = threading.Lock()
        self._ended = threading.Event()
        weakref.finalize(self, self._ended.set)
        _begin_after_forks(weakref.ref(self))

    def renew(self) -> None:
        """Forget the state of the parent of this process."""
        self._starting = threading.Lock()

    def start(self) -> None:
        """Begin with the chores, if this process has not done so yet."""
        with self._starting:
            if self._process == os.getpid():
                return
            self._process = os.getpid()
        for chore in self._chores:
            threading.Thread(
                target=_repeat, args=[chore, self._ended], name=chore.name, daemon=True
            ).start()


def _begin_after_forks(reference: "weakref.ref[Chores]") -> None:
    """Begin with chores in each process that is forked from this one."""

    def in_child() -> None:
        chores = reference()
        if chores:
            # A thread that held it has stayed behind.
            chores.renew()
            chores.start()

    os.register_at_fork(after_in_child=in_child)


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

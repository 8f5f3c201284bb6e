"""Work that a service does again and again, beside its requests."""

import os
import random
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from oslo_log import log

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

LOG = log.getLogger(__name__)


# How long a process that has loaded the application waits for a fork or a request, in
# seconds, before it does the chores itself.
ALONE_SECONDS = 3
# Its own, since nothing else should notice that numbers were drawn beside it.
_chance = random.Random()
# Processes that are forked would all draw the same ones.
os.register_at_fork(after_in_child=_chance.seed)


class Chore(NamedTuple):
    """Something to do every so many seconds, more or less.

    Every process does it, so it has to find out by itself whether it is its turn.
    """

    name: str
    work: Callable[[], None]
    every: float


class Chores:
    """Does chores in threads of each process that serves, requests or not.

    A server may fork after it has loaded the application, and threads would stay
    behind. So they begin after a fork, with the first request, or, if neither has come
    for a while, in the process that has loaded the application.

    They end when nothing refers to the application any more.

    :param application: the application whose requests are waited for
    """

    def __init__(self, application: "WSGIApplication", chores: Sequence[Chore]) -> None:
        self._application = application
        self._chores = chores
        self._process = 0
        self._starting = threading.Lock()
        self._has_forked = False
        self._ended = threading.Event()
        weakref.finalize(self, self._ended.set)
        _begin_after_forks(weakref.ref(self))
        waiting = threading.Timer(ALONE_SECONDS, _begin_alone, [weakref.ref(self)])
        waiting.daemon = True
        waiting.start()

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Serve a request."""
        if self._process != os.getpid():
            self.start()
        return self._application(environment, start_response)

    def forks(self) -> None:
        """Leave the chores to processes that are about to be forked."""
        self._has_forked = True

    def start_alone(self) -> None:
        """Begin with the chores, unless other processes have been forked for that."""
        if not self._has_forked:
            self.start()

    def renew(self) -> None:
        """Forget what only the parent of this process knows."""
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


def _begin_after_forks(chores: "weakref.ref[Chores]") -> None:
    """Begin with chores in each process that is forked from this one."""

    def before() -> None:
        found = chores()
        if found:
            found.forks()

    def in_child() -> None:
        found = chores()
        if found:
            # A thread that held it has stayed behind.
            found.renew()
            found.start()

    os.register_at_fork(before=before, after_in_child=in_child)


def _begin_alone(chores: "weakref.ref[Chores]") -> None:
    found = chores()
    if found:
        found.start_alone()


def _repeat(chore: Chore, ended: threading.Event) -> None:
    """Do a chore until the end. What fails is logged once, until it works again."""
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

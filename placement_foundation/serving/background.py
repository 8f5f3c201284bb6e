"""Work that a service does again and again, beside its requests."""

import os
import random
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from oslo_log import log

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

LOG = log.getLogger(__name__)


class Chore(NamedTuple):
    """Something to do every so many seconds, more or less.

    Every process does it, so it has to find out by itself whether it is its turn.
    """

    name: str
    work: Callable[[], None]
    every: float


class Chores:
    """Does chores in a thread of each process, from its first request on.

    A server forks after it has loaded the application, and a thread would stay behind.

    :param application: the application whose requests are waited for
    """

    def __init__(self, application: "WSGIApplication", chores: Sequence[Chore]) -> None:
        self._application = application
        self._chores = chores
        self._process = 0
        self._starting = threading.Lock()

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Serve a request."""
        if self._process != os.getpid():
            self._start()
        return self._application(environment, start_response)

    def _start(self) -> None:
        with self._starting:
            if self._process == os.getpid():
                return
            self._process = os.getpid()
        for chore in self._chores:
            threading.Thread(
                target=_repeat, args=[chore], name=chore.name, daemon=True
            ).start()


def _repeat(chore: Chore) -> None:
    """Do a chore for ever. What fails is logged once, until it works again."""
    has_failed = False
    never = threading.Event()
    while True:
        # Processes that began together should not stay in step.
        never.wait(chore.every * random.uniform(0.5, 1.5))
        try:
            chore.work()
            has_failed = False
        except Exception as exc:
            if not has_failed:
                LOG.warning("%s failed: %s", chore.name, exc)
            has_failed = True

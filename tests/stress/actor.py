"""One of many processes that use the service at once, and write down what happened."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.stress import room
from tests.stress.room import Event
from tests.stress.world import Service, Unanswered


class Actor:
    """A user of the service, and what it has asked and been answered."""

    # How long it rests after each deed, in seconds; others have work to do.
    pause = 0.0
    # How many deeds make a check worth its while.
    least_deeds = 0

    def __init__(self, service: Service) -> None:
        self.events: list[Event] = []
        self._service = service

    def act(self) -> None:
        """Do one of the things that users do."""
        raise NotImplementedError

    def end(self) -> None:
        """Do what is to be done in the end."""

    def call(
        self,
        kind: str,
        method: str,
        path: str,
        body: Any = None,
        read: Callable[[Any], dict[str, Any]] | None = None,
        **members: Any,
    ) -> Event:
        """Send a request, and return what became of it.

        :param read: returns members of the event, given the document of a success
        """
        started = time.monotonic()
        try:
            status, document = self._service.call(method, path, body)
            if status >= 400:
                error = document["errors"][0]
                members["reason"] = f"{error.get('code', '')} {error['detail']}"
            elif read:
                members |= read(document)
        except Unanswered as exc:
            status, members["reason"] = 0, str(exc)
        self.events.append(Event(kind, started, time.monotonic(), status, **members))
        return self.events[-1]


def run(
    kind: Callable[..., Actor],
    url: str,
    arguments: tuple[Any, ...],
    seconds: float,
    path: Path,
) -> None:
    """Let an actor act for some time, and write down what happened."""
    with contextlib.closing(Service(url)) as service:
        actor = kind(service, *arguments)
        began = time.monotonic()
        done = 0
        # On a slow machine longer, so that there is something to check.
        while time.monotonic() < began + seconds * (1 + (done < actor.least_deeds)):
            actor.act()
            done += 1
            time.sleep(actor.pause)
        actor.end()
    room.save(path, actor.events)

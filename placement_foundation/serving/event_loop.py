"""The event loop of a process: it waits for what clients send, and read.

waitress's own asks every connection, before each turn, what to wait for. This one asks
those again where something has happened, so a turn costs the same with one connection
and with a thousand that are idle.
"""

import collections
import select
import selectors
import threading
from typing import Any

from waitress import wasyncore

# What a selector waits for, as waitress calls it.
FLAGS = (
    (selectors.EVENT_READ, select.POLLIN),
    (selectors.EVENT_WRITE, select.POLLOUT),
)


class EventLoop(dict[int, Any]):
    """The connections and listening sockets, by file descriptor.

    waitress adds and removes them, some in the threads that answer. Any thread may call
    ``look_at``; ``turn`` and ``close`` are for the thread of the loop.
    """

    def __init__(self) -> None:
        super().__init__()
        self._selector = selectors.DefaultSelector()
        # So that none is removed while it is asked.
        self._asking = threading.Lock()
        # What is waited for, by file descriptor, where that is anything.
        self._awaited: dict[int, int] = {}
        # Those to be asked again what they wait for.
        self._changed: collections.deque[Any] = collections.deque()

    def __setitem__(self, number: int, dispatcher: Any) -> None:
        super().__setitem__(number, dispatcher)
        # It may not be ready to be asked.
        self._changed.append(dispatcher)

    def __delitem__(self, number: int) -> None:
        with self._asking:
            super().__delitem__(number)
            if self._awaited.pop(number, 0):
                self._selector.unregister(number)

    def look_at(self, dispatcher: Any) -> None:
        """Ask it before the next turn what it waits for."""
        self._changed.append(dispatcher)

    def turn(self, seconds: float) -> None:
        """Handle what has happened; wait for so long if there is nothing."""
        while self._changed:
            with self._asking:
                self._ask(self._changed.popleft())
        for key, events in self._selector.select(seconds):
            dispatcher = self.get(key.fd)
            # What came before it may have closed it.
            if dispatcher is not None:
                flags = sum(flag for event, flag in FLAGS if events & event)
                wasyncore.readwrite(dispatcher, flags)
                self._changed.append(dispatcher)

    def close(self) -> None:
        """Close everything."""
        wasyncore.close_all(self)
        self._selector.close()

    def _ask(self, dispatcher: Any) -> None:
        number = dispatcher._fileno
        is_open = self.get(number) is dispatcher
        if not is_open:
            return
        wanted = selectors.EVENT_READ if dispatcher.readable() else 0
        if dispatcher.writable():
            wanted |= selectors.EVENT_WRITE
        before = self._awaited.get(number, 0)
        if wanted == before:
            return
        # A selector cannot wait for nothing.
        if not wanted:
            self._selector.unregister(number)
        elif before:
            self._selector.modify(number, wanted)
        else:
            self._selector.register(number, wanted)
        self._awaited[number] = wanted

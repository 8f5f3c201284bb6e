"""How many connections each process of a web server has, for all of them to see.

A process that has more than another one leaves new connections to that one. Otherwise
the first to wake gets all that come at once, and keeps them.
"""

import mmap
import weakref

# More processes than this are not counted, and leave connections to nobody.
MOST = 256
SIZE = 4
# What stands where no process accepts connections.
NOBODY = 0


class Count:
    """The connections of a process."""

    def __init__(self, counts: memoryview, place: int) -> None:
        self._counts = counts
        self._place = place

    def set(self, connections: int) -> None:
        """Tell the others how many there are, and that more are accepted."""
        self._counts[self._place] = connections + 1

    def leave(self) -> None:
        """Tell the others that no more are accepted."""
        self._counts[self._place] = NOBODY

    def is_lowest(self) -> bool:
        """Return whether no process that accepts connections has fewer."""
        return self._counts[self._place] <= min(filter(None, self._counts))


class ConnectionCounts:
    """The counts of all processes; it is made, and used, in the one that forks them."""

    def __init__(self) -> None:
        # Anonymous memory is shared by a process and those that it forks.
        self._counts = memoryview(mmap.mmap(-1, MOST * SIZE)).cast("I")
        self._owners: weakref.WeakValueDictionary[int, object] = (
            weakref.WeakValueDictionary()
        )

    def add(self, owner: object) -> Count:
        """Return a count for a process that is about to be forked.

        :param owner: stands for the process here, and is forgotten when it has ended
        """
        free = [place for place in range(MOST) if place not in self._owners]
        for place in free:
            # A process that was killed has not left.
            self._counts[place] = NOBODY
        if not free:
            return Count(memoryview(bytearray(SIZE)).cast("I"), 0)
        self._owners[free[0]] = owner
        return Count(self._counts, free[0])

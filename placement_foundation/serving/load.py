"""How many connections each process of a web server has in use, for all to see.

A process with more of them than another one lets that one accept new connections.
Otherwise the first to wake gets all that come at once, and keeps them.
"""

import mmap
import weakref

# The loads of more processes than this are not shared.
MOST = 256
# What stands where no process accepts connections.
ABSENT = 0
# After how long without a sign of life a process counts as absent.
SILENT_SECONDS = 3


class Loads:
    """The loads of all processes; it is made, and used, in the one that forks them."""

    def __init__(self) -> None:
        # Anonymous memory is shared by a process and those that it forks.
        self._loads = memoryview(mmap.mmap(-1, MOST * 4)).cast("I")
        self._signs = memoryview(mmap.mmap(-1, MOST * 8)).cast("d")
        self._owners: weakref.WeakValueDictionary[int, object] = (
            weakref.WeakValueDictionary()
        )

    def add(self, owner: object) -> "Load":
        """Return the load of a process that is about to be forked.

        :param owner: stands for the process here, and is forgotten when it has ended
        """
        for place in range(MOST):
            if place not in self._owners:
                self._owners[place] = owner
                self._loads[place] = ABSENT
                return Load(self._loads, self._signs, place)
        alone = bytearray(8)
        return Load(memoryview(alone[:4]).cast("I"), memoryview(alone).cast("d"), 0)


class Load:
    """The load of one process, which it shows to the others."""

    def __init__(
        self, loads: "memoryview[int]", signs: "memoryview[float]", place: int
    ) -> None:
        self._loads = loads
        self._signs = signs
        self._place = place

    def show(self, connections: int) -> None:
        """Show how many are in use, and that more are accepted."""
        self._loads[self._place] = connections + 1

    def withdraw(self) -> None:
        """Show that no more are accepted."""
        self._loads[self._place] = ABSENT

    def give_sign(self, now: float) -> None:
        """Show that this process is alive, and drop those that have not done so.

        To be called once a second. One that stopped, and goes on, shows its load again.

        :param now: seconds of a clock that all processes share, such as the monotonic
        """
        self._signs[self._place] = now
        for place, sign in enumerate(self._signs):
            if now - sign > SILENT_SECONDS:
                self._loads[place] = ABSENT

    def is_lowest(self) -> bool:
        """Return whether no process that accepts connections has fewer in use."""
        return self._loads[self._place] <= self.lowest()

    def lowest(self) -> int:
        """Return a number that changes when the lowest load does."""
        return min(filter(None, self._loads), default=ABSENT)

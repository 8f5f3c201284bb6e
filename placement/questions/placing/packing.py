"""How many consumers each kind of host takes, where domains overlap: exact, bounded.

Hosts that are in the same domains are one kind. The search is for a number for each
kind, at most its room, such that no domain gets more than it has left, and the sum is
as large as is needed. A kind in one domain takes what the others leave, so the search
branches over the kinds in several domains, the largest number first.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

# The domains that hosts of a kind are in.
Kind: TypeAlias = tuple[str, ...]

# How many nodes of the search tree are looked at.
BUDGET = 50_000


def pack(
    rooms: Mapping[Kind, int],
    left: Mapping[str, int],
    wanted: int,
    budget: int = BUDGET,
) -> tuple[Mapping[Kind, int], bool]:
    """Return how many consumers each kind of host takes, as many as are wanted if so.

    The second part says whether no other numbers have a larger sum, or it is enough.

    :param rooms: for how many consumers the hosts of a kind have room
    :param left: how many consumers each domain may still take
    """
    search = _Search(rooms, dict(left), wanted, budget)
    search.branch(0, 0)
    return search.best, search.budget > 0 or search.most >= wanted


class _Search:
    """A depth-first search with bounds. Its state is the branch that it is in."""

    def __init__(
        self,
        rooms: Mapping[Kind, int],
        left: dict[str, int],
        wanted: int,
        budget: int,
    ) -> None:
        self._several = [(kind, room) for kind, room in rooms.items() if len(kind) > 1]
        # The widest take most from others, so they are decided first.
        self._several.sort(key=lambda each: (-len(each[0]), each[0]))
        alone = ((kind, room) for kind, room in rooms.items() if len(kind) == 1)
        self._alone: dict[Kind, int] = dict(alone)
        self._left = left
        self._wanted = wanted
        self._numbers: dict[Kind, int] = {}
        self.budget = budget
        self.best: dict[Kind, int] = {}
        self.most = -1

    def branch(self, depth: int, count: int) -> None:
        """Decide the kinds from one on, after ``count`` consumers."""
        self.budget -= 1
        if depth == len(self._several):
            self._end(count)
            return
        kind, room = self._several[depth]
        for number in range(self._limit(kind, room), -1, -1):
            self._take(kind, number)
            rest = self._bound(self._several[depth + 1 :])
            if count + number + rest > self.most:
                self.branch(depth + 1, count + number)
            self._take(kind, -number)
            if self.most >= self._wanted or self.budget <= 0:
                return

    def _end(self, count: int) -> None:
        """Keep the numbers if they are better than those before."""
        alone = {kind: self._limit(kind, room) for kind, room in self._alone.items()}
        total = count + sum(alone.values())
        if total > self.most:
            self.most, self.best = total, {**self._numbers, **alone}

    def _limit(self, kind: Kind, room: int) -> int:
        return max(0, min(room, *(self._left[name] for name in kind)))

    def _take(self, kind: Kind, number: int) -> None:
        self._numbers[kind] = self._numbers.get(kind, 0) + number
        for name in kind:
            self._left[name] -= number

    def _bound(self, several: Sequence[tuple[Kind, int]]) -> int:
        """Return a bound on the consumers of the undecided kinds.

        Each consumer takes a place in every domain of its kind.
        """
        kinds = [*several, *self._alone.items()]
        by_kind = sum(self._limit(kind, room) for kind, room in kinds)
        names = {name for kind, _ in kinds for name in kind}
        places = sum(self._left[name] for name in names)
        alone = sum(self._limit(kind, room) for kind, room in self._alone.items())
        # Those in one domain take one place, all others two or more.
        by_place = alone + max(0, places - alone) // 2
        return min(by_kind, by_place)

"""The relaxation that looks at all contended classes at once: vector packing.

Items have to be packed into bins, each into one that it may go to, so that no bin is
overfull in any class. This is solved exactly by bin completion: one bin after the other
is filled in every way to which nothing can be added, and which does not leave more
unused than all bins together can spare. A rest that could not be packed is remembered.
It may take too long, so the steps are counted.
"""

import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

# Amounts by class.
Vector: TypeAlias = tuple[int, ...]

# With more items or bins, only their sums are compared.
MOST_ITEMS = MOST_BINS = 64


class _OutOfStepsError(Exception):
    """The packing was not decided within its steps."""


def is_possible(
    items: Sequence[tuple[Vector, int]], bins: Sequence[Vector], steps: int
) -> tuple[bool | None, int]:
    """Return whether items can be packed into bins.

    :param items: the amounts of each item, and the set of the bins that it may go to,
        as an integer with a bit for each
    :param bins: the room of each bin
    :returns: the result, None if the steps do not suffice or there are too many items
        or bins; and how many steps it took
    """
    if not items:
        return True, 0
    totals = [sum(of_class) for of_class in zip(*bins, strict=True)]
    needs = [sum(of_class) for of_class in zip(*(of for of, _ in items), strict=True)]
    if any(map(operator.gt, needs, totals)):
        return False, 0
    if len(items) > MOST_ITEMS or len(bins) > MOST_BINS:
        return None, 0
    whole = [total or 1 for total in totals]
    ordered = sorted(
        items,
        key=lambda item: (max(map(operator.truediv, item[0], whole)), item),
        reverse=True,
    )
    packing = Packing(ordered, bins, steps)
    return packing.is_possible(), steps - packing.steps


class Packing:
    """One packing problem, and the search for its answer.

    A set of items is an integer with a bit for each; a vector is an integer with a
    field for each class. So one operation adds, subtracts or compares vectors.

    :param items: the largest first, and equal ones next to each other
    :param steps: how many steps may be taken
    """

    def __init__(
        self, items: Sequence[tuple[Vector, int]], bins: Sequence[Vector], steps: int
    ) -> None:
        self.steps = steps
        totals = [sum(of_class) for of_class in zip(*bins, strict=True)]
        self._width = max(totals).bit_length() + 1
        # The highest bit of each field: it is lost if a subtraction needs to borrow.
        self._guards = self._vector([1 << self._width - 1] * len(totals))
        needs = [
            sum(of_class) for of_class in zip(*(of for of, _ in items), strict=True)
        ]
        self._spare = [have - need for have, need in zip(totals, needs, strict=True)]
        self._items = [self._vector(amounts) for amounts, _ in items]
        self._is_twin = [
            False,
            *itertools.starmap(operator.eq, itertools.pairwise(items)),
        ]
        admitted = [
            sum(1 << item for item, (_, into) in enumerate(items) if into >> each & 1)
            for each in range(len(bins))
        ]
        # Small bins that few items may go to are filled first, equal bins in a row.
        self._bins = sorted(
            zip(map(self._vector, bins), admitted, strict=True),
            key=lambda each: (each[1].bit_count(), each),
        )
        self._admitted_later = [0]
        for _, of_bin in reversed(self._bins):
            self._admitted_later.append(self._admitted_later[-1] | of_bin)
        self._admitted_later.reverse()
        self._failed: set[tuple[int, int, int]] = set()

    def _vector(self, amounts: Sequence[int]) -> int:
        return sum(
            amount << self._width * which for which, amount in enumerate(amounts)
        )

    def is_possible(self) -> bool | None:
        """Return whether all items can be packed; None if the steps do not suffice."""
        everything = (1 << len(self._items)) - 1
        try:
            return self._pack(0, everything, self._vector(self._spare), 0)
        except _OutOfStepsError:
            return None

    def _covers(self, vector: int, other: int) -> bool:
        """Return whether a vector is at least another one in every class."""
        return ((vector | self._guards) - other) & self._guards == self._guards

    def _step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise _OutOfStepsError

    def _pack(self, which: int, rest: int, spare: int, first: int) -> bool:
        """Return whether the rest of the items can be packed from a bin on.

        :param spare: the vector of what may be left unused in these bins
        :param first: the lowest number of an item that this bin may have; among equal
            bins, each begins with a smaller item than the one before
        """
        self._step()
        if not rest:
            return True
        if rest & ~self._admitted_later[which]:
            return False
        if which == 0 or self._bins[which] != self._bins[which - 1]:
            first = 0
        if (which, rest, first) in self._failed:
            return False
        # The fullest comes first: it is most likely to lead to an answer.
        for unused, filling in sorted(self._fillings(which, rest, spare, first)):
            begins = (filling & -filling).bit_length() or len(self._items)
            if self._pack(which + 1, rest & ~filling, spare - unused, begins):
                return True
        self._failed.add((which, rest, first))
        return False

    def _fillings(
        self, which: int, rest: int, spare: int, first: int
    ) -> list[tuple[int, int]]:
        """Return, for each way to fill a bin, what stays unused, and its items."""
        size, admitted = self._bins[which]
        must = rest & ~self._admitted_later[which + 1]
        if self._bins[which] == self._bins[-1]:
            # All later bins are like this one: the largest item may as well be here.
            must |= rest & -rest
        fitting = [
            item
            for item in _members(rest & admitted & -1 << first)
            if self._covers(size, self._items[item])
        ]
        if must & ~sum(1 << item for item in fitting):
            return []
        # The sum of each item and all after it.
        sums = [*itertools.accumulate(self._items[item] for item in fitting[::-1])]
        sums = [*sums[::-1], 0]
        fillings: list[tuple[int, int]] = []
        # Each entry: the place of the next item, the room left, the items in the bin.
        waiting = [(0, size, 0)]
        guards, items = self._guards, self._items
        while waiting:
            at, room, filling = waiting.pop()
            self._step()
            if (spare + sums[at] | guards) - room & guards != guards:
                continue
            if at == len(fitting):
                if not self._can_add(fitting, room, filling):
                    fillings.append((room, filling))
                continue
            item = fitting[at]
            if not must >> item & 1:
                waiting.append((self._after_twins(fitting, at), room, filling))
            if (room | guards) - items[item] & guards == guards:
                waiting.append((at + 1, room - items[item], filling | 1 << item))
        return fillings

    def _after_twins(self, fitting: Sequence[int], at: int) -> int:
        """Return the place after an item that is left out and all items equal to it."""
        at += 1
        while (
            at < len(fitting)
            and self._is_twin[fitting[at]]
            and fitting[at - 1] == fitting[at] - 1
        ):
            at += 1
        return at

    def _can_add(self, fitting: Iterable[int], room: int, filling: int) -> bool:
        return any(
            not filling >> item & 1 and self._covers(room, self._items[item])
            for item in fitting
        )


def _members(items: int) -> Iterator[int]:
    """Yield the numbers in a set, the lowest first."""
    while items:
        least = items & -items
        yield least.bit_length() - 1
        items ^= least

"""One search: what it may do, what it has done, and what it has learned.

Work is counted in picks, so that no clock decides.
"""

import dataclasses
import random
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TypeAlias

from placement.model.tree import Provider
from placement.search.plan import Plan

# The providers of all slots, by number of the slot.
Picks: TypeAlias = tuple[Provider, ...]

# Free picks of each anchor for each slot, outside the budget: enough for a walk that
# goes straight to an answer, and in proportion to the data and the request.
FREE_PICKS = 4
# How many times as large a share is when hard anchors are looked at again.
GROWTH = 8
# How much one search may remember: the sum of the levels of its nogoods, to which their
# sizes are proportional.
MEMORY = 200_000
# The form of each root.
ROOT = "root"


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """How many picks a search may make.

    ``per_anchor`` is how many picks one anchor may make in a row without an answer,
    before others have their turn; ``total`` is for all anchors together.
    """

    per_anchor: int = 2_000
    total: int = 400_000


class Budget:
    """The remaining picks of one search.

    ``turn`` is what is left for the anchor whose turn it is. All its work is subtracted
    from this, and it pauses when the result is negative.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        limits = limits or Limits()
        self.turn = 0
        self._allowed = 0
        self._free = 0
        self._share = limits.per_anchor
        self._left = limits.total

    @property
    def is_used_up(self) -> bool:
        """Whether no picks are left to share out."""
        return self._left == 0

    def begin_turn(self, free: int) -> bool:
        """Give an anchor its share, in addition to its free picks.

        :returns: whether the anchor has any picks
        """
        self._free = free
        self._allowed = self.turn = free + min(self._share, self._left)
        return self._allowed > 0

    def end_turn(self, answer: int) -> int:
        """Subtract what a turn has spent, and its answer, from what is left in all.

        :returns: how many free picks the anchor still has
        """
        spent = self._allowed - self.turn + answer
        if spent <= self._free:
            return self._free - spent
        self._left = max(0, self._left - (spent - self._free))
        return 0

    def enlarge_share(self) -> None:
        """Give hard anchors more for their next turn."""
        self._share *= GROWTH


class Tally:
    """The work of a search.

    ``anchors`` is how many trees were searched. ``proofs`` counts the checks whether a
    partial assignment leaves enough for the rest. ``dead_ends`` counts, by suffix of
    the group, where no provider was left to pick. ``pauses`` is how many times an
    anchor spent its share, and ``exhausted`` says whether the budget ended the search
    before it was complete.
    """

    def __init__(self) -> None:
        self.anchors = 0
        self.picks = 0
        self.proofs = 0
        self.dead_ends: Counter[str] = Counter()
        self.pauses = 0
        self.exhausted = False

    def fail(self, suffixes: Iterable[str]) -> None:
        """Count a dead end at the groups of some suffixes."""
        self.dead_ends.update(suffixes)

    def hardest(self, most: int) -> list[str]:
        """Return the suffixes of the groups with the most dead ends, sorted."""
        return sorted(suffix for suffix, _ in self.dead_ends.most_common(most))


class Search:
    """One search: its plan, its order, its budget, and what it has learned so far.

    ``free_picks`` are how many each anchor has. ``nogoods`` has the canonical forms of
    nodes without an answer, ``ROOT`` for the root, by the form of their anchor: anchors
    of the same form share them.
    """

    def __init__(
        self,
        plan: Plan,
        shuffle: random.Random | None = None,
        tally: Tally | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.plan = plan
        self.shuffle = shuffle
        self.tally = tally or Tally()
        self.budget = budget or Budget()
        self.free_picks = FREE_PICKS * len(plan.slots)
        self.numbers: dict[Hashable, int] = {}
        self.nogoods: dict[Hashable, set[Hashable]] = {}
        self._memory = MEMORY

    def remember(self, anchor: Hashable, node: Hashable, size: int) -> set[Hashable]:
        """Remember the form of a node without an answer, unless the memory is full.

        :param anchor: the form of its anchor
        :returns: all forms that are known there
        """
        forms = self.nogoods.setdefault(anchor, set())
        if self._memory >= size:
            self._memory -= size
            forms.add(node)
        return forms

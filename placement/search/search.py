"""The state that the anchors of one search share."""

import random
from collections.abc import Collection, Hashable
from typing import TypeAlias

from placement.model.tree import Provider
from placement.search.budget import FREE_PICKS, Budget
from placement.search.plan import Plan
from placement.search.symmetry import Numbers
from placement.search.tally import Tally

# The providers of all slots, by number of the slot.
Picks: TypeAlias = tuple[Provider, ...]

# How much one search may remember: the sum of the levels of its nogoods, to which their
# sizes are proportional.
MEMORY = 200_000


class Nogoods:
    """The canonical forms of nodes without an answer, as many as the memory allows.

    Anchors of the same form share them.
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self._memory = memory
        self._of_anchors: dict[Hashable, set[Hashable]] = {}

    def __bool__(self) -> bool:
        return bool(self._of_anchors)

    def at(self, anchor: Hashable) -> Collection[Hashable]:
        """Return the known forms of nodes at an anchor, given the anchor's form."""
        return self._of_anchors.get(anchor, ())

    def add(self, anchor: Hashable, node: Hashable, size: int) -> Collection[Hashable]:
        """Remember the form of a node at an anchor, unless the memory is full.

        :returns: all forms that are known there
        """
        forms = self._of_anchors.setdefault(anchor, set())
        if self._memory >= size:
            self._memory -= size
            forms.add(node)
        return forms


class Search:
    """One search: its plan, its order, its budget, and what it has learned so far.

    ``free_picks`` are how many each anchor has. ``unsatisfiable`` has the canonical
    forms of anchors that had no answer, ``nogoods`` those of nodes.
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
        self.numbers: Numbers = {}
        self.nogoods = Nogoods()
        self.unsatisfiable: set[Hashable] = set()

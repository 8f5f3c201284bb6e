"""What the anchors of one search have in common."""

import random
from collections.abc import Hashable

from placement.search.plan import Plan
from placement.search.symmetry import Numbers
from placement.search.tally import Tally


class Search:
    """One search: its plan, its order, and what it has learned so far.

    ``unsatisfiable`` has the canonical forms of anchors that had no answer.
    """

    def __init__(
        self, plan: Plan, shuffle: random.Random | None, tally: Tally | None
    ) -> None:
        self.plan = plan
        self.shuffle = shuffle
        self.tally = tally or Tally()
        self.numbers: Numbers = {}
        self.unsatisfiable: set[Hashable] = set()

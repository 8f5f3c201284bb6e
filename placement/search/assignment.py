"""The search at one anchor: which provider serves which slot.

It goes forward as if there were no dead ends. When it has run into one, it asks how far
back the reason lies, and remembers what it looked like.
"""

import random
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

from placement.search import bounds, rules
from placement.search.decision import Decision, Tally, decide_all
from placement.search.model import Provider
from placement.search.plan import Plan, Slot
from placement.search.state import Domains, State
from placement.search.symmetry import Numbers, Symmetry

# The providers of all slots, by number of the slot.
Picks: TypeAlias = tuple[Provider, ...]

# How many dead ends are remembered at one anchor.
MEMORY = 100_000


class Search:
    """What the anchors of one search have in common.

    ``barren`` are the shapes of anchors that had no answer.
    """

    def __init__(
        self, plan: Plan, shuffle: random.Random | None, tally: Tally | None
    ) -> None:
        self.plan = plan
        self.shuffle = shuffle
        self.tally = tally or Tally()
        self.numbers: Numbers = {}
        self.barren: set[Hashable] = set()


def assign(
    search: Search, root: Provider, domains: Domains, wanted: int
) -> Iterator[Picks]:
    """Yield every way to serve all slots, each once.

    :param domains: what each slot may be served by, none empty
    :param wanted: the bits that the picks together must have
    """
    state = State(search.plan, domains, wanted)
    if not bounds.are_enough(search.plan, domains):
        search.tally.refuse(rules.leaves_room)
        return
    symmetry = None
    if search.barren:
        symmetry = Symmetry(state, domains, root.uuid, search.numbers)
        if symmetry.shape() in search.barren:
            return
    assignment = Assignment(search, root, state, symmetry)
    yield from assignment.results()
    if assignment.is_barren:
        search.barren.add(assignment.symmetry.shape())


class Assignment:
    """A walk through the tree of decisions at one anchor.

    A *node* is what the decisions before a level have led to. ``_fertile`` tells of
    each node on the way whether it has led to an answer, ``_troubled`` whether one of
    its branches was a dead end; levels before ``_proven`` were looked at by ``bounds``.
    """

    def __init__(
        self,
        search: Search,
        root: Provider,
        state: State,
        symmetry: Symmetry | None,
    ) -> None:
        self._search = search
        self._root = root
        self._state = state
        self._symmetry = symmetry
        pick_rules = rules.pick_rules(search.plan, state.wanted)
        self._decisions = list(decide_all(state, pick_rules, search.tally))
        self._open_slots = _open_slots(self._decisions)
        state.serve_in_order(self._open_slots[0])
        depth = len(self._decisions)
        self._chosen: list[Provider] = []
        self._fertile = [False] * depth
        self._troubled = [False] * depth
        self._domains: list[Domains] = [state.domains] * depth
        self._proven = 0
        self._dead_ends: set[Hashable] = set()
        self.is_barren = False

    @property
    def symmetry(self) -> Symmetry:
        """What can stand in for what here: looked at when there is need."""
        if self._symmetry is None:
            self._symmetry = Symmetry(
                self._state,
                self._domains[0],
                self._root.uuid,
                self._search.numbers,
            )
        return self._symmetry

    def results(self) -> Iterator[Picks]:
        """Yield the picks of each way to take all decisions."""
        branches = [self._branches(0)]
        while branches:
            level = len(branches) - 1
            choice = next(branches[level], None)
            if choice is None:
                del branches[self._leave(level) :]
            elif not self._decisions[level].make(self._state, choice):
                continue
            elif level + 1 == len(self._decisions):
                yield tuple(pick for pick in self._state.picks if pick)
                self._note_answer()
                self._decisions[level].undo(self._state, choice)
            else:
                self._chosen.append(choice)
                if self._is_hopeless(level + 1):
                    self._step_back()
                else:
                    branches.append(self._branches(level + 1))

    def _branches(self, level: int) -> Iterator[Provider]:
        """Enter a node, and return what there is to choose from."""
        self._fertile[level] = self._troubled[level] = False
        self._domains[level] = self._state.domains
        self._proven = min(self._proven, level)
        options = self._decisions[level].options(self._state)
        if self._search.shuffle:
            options = self._search.shuffle.sample(options, len(options))
        return iter(options)

    def _note_answer(self) -> None:
        for level in range(len(self._chosen), -1, -1):
            if self._fertile[level]:
                break
            self._fertile[level] = True

    def _step_back(self) -> None:
        """Take the last decision back; the node before it has a dead branch."""
        level = len(self._chosen) - 1
        self._decisions[level].undo(self._state, self._chosen.pop())
        self._troubled[level] = True

    def _leave(self, level: int) -> int:
        """Leave a node whose branches are exhausted, and all that it proves hopeless.

        :returns: the level of the first node that was left
        """
        if self._fertile[level]:
            if level:
                self._decisions[level - 1].undo(self._state, self._chosen.pop())
            return level
        self._remember(level)
        first = self._first_hopeless(level)
        while len(self._chosen) > first:
            self._step_back()
        if first < level:
            self._remember(first)
        if first:
            self._step_back()
        else:
            self.is_barren = True
        return first

    def _remember(self, level: int) -> None:
        if len(self._dead_ends) < MEMORY:
            self._dead_ends.add(self._key(level))

    def _key(self, level: int) -> Hashable:
        return self.symmetry.key(self._state, level, self._open_slots[level])

    def _is_hopeless(self, level: int) -> bool:
        """Tell whether a node that was just reached is known to lead nowhere."""
        if self._dead_ends and self._key(level) in self._dead_ends:
            return True
        if not self._troubled[level - 1]:
            return False
        self._domains[level] = self._state.domains
        return not self._is_possible(level)

    def _first_hopeless(self, level: int) -> int:
        """Return the first level on the way to a dead end that is one already."""
        if level == 0 or self._is_possible(level):
            return level
        low, high = self._proven, level
        while low < high:
            middle = (low + high) // 2
            if self._fertile[middle] or self._is_possible(middle):
                low = middle + 1
            else:
                high = middle
        self._proven = high
        return high

    def _is_possible(self, level: int) -> bool:
        """Tell whether what was decided before a level leaves enough for the rest."""
        self._search.tally.proofs += 1
        plan = self._search.plan
        taken: Counter[tuple[int, Provider]] = Counter()
        for decision, provider in zip(
            self._decisions[:level], self._chosen[:level], strict=True
        ):
            if decision.slot:
                for which, amount in decision.slot.demands:
                    taken[which, provider] += amount
        return bounds.is_possible(
            plan,
            self._open_slots[level],
            self._domains[level],
            lambda which, provider: plan.room(which, provider) - taken[which, provider],
        )


def _open_slots(decisions: Sequence[Decision]) -> list[list[Slot]]:
    """Return, for each level, the slots that are served from there on."""
    return [
        [decision.slot for decision in decisions[level:] if decision.slot]
        for level in range(len(decisions))
    ]

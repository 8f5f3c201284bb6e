"""The search at one anchor: backtracking over the decisions, with backjumping.

It goes forward without looking ahead. At a dead end it proves how far back the reason
lies, jumps back to there, and records the canonical form of the node as a nogood.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

from placement.search import bounds, rules
from placement.search.decision import Decision, decide_all
from placement.search.model import Provider
from placement.search.plan import Slot
from placement.search.search import Search
from placement.search.state import Domains, State
from placement.search.symmetry import Symmetry

# The providers of all slots, by number of the slot.
Picks: TypeAlias = tuple[Provider, ...]

# How many nogoods are recorded at one anchor.
MOST_NOGOODS = 100_000


def assign(
    search: Search, root: Provider, domains: Domains, wanted: int
) -> Iterator[Picks]:
    """Yield every way to serve all slots, each once.

    :param domains: the providers that may serve each slot, none empty
    :param wanted: the bits that the picks together must have
    """
    state = State(search.plan, domains, wanted)
    if not bounds.are_enough(search.plan, domains):
        search.tally.refuse(rules.leaves_room)
        return
    symmetry = None
    if search.unsatisfiable:
        symmetry = Symmetry(state, domains, root.uuid, search.numbers)
        if symmetry.shape() in search.unsatisfiable:
            return
    assignment = Assignment(search, root, state, symmetry)
    yield from assignment.results()
    if assignment.is_unsatisfiable:
        search.unsatisfiable.add(assignment.symmetry.shape())


class Assignment:
    """A depth-first walk through the tree of decisions at one anchor.

    A *node* is a partial assignment: the decisions before a level. For each node on the
    current path, ``_has_answer`` tells whether it has led to an answer, and
    ``_has_failed`` whether one of its branches was a dead end. The nodes of levels
    before ``_proven`` are known to pass the relaxation of ``bounds``.
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
        self._has_answer = [False] * depth
        self._has_failed = [False] * depth
        self._domains: list[Domains] = [state.domains] * depth
        self._proven = 0
        self._nogoods: set[Hashable] = set()
        self.is_unsatisfiable = False

    @property
    def symmetry(self) -> Symmetry:
        """Which providers are interchangeable here, worked out on first use."""
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
                if self._is_dead_end(level + 1):
                    self._step_back()
                else:
                    branches.append(self._branches(level + 1))

    def _branches(self, level: int) -> Iterator[Provider]:
        """Enter a node, and return an iterator over its choices."""
        self._has_answer[level] = self._has_failed[level] = False
        self._domains[level] = self._state.domains
        self._proven = min(self._proven, level)
        options = self._decisions[level].options(self._state)
        if self._search.shuffle:
            options = self._search.shuffle.sample(options, len(options))
        return iter(options)

    def _note_answer(self) -> None:
        for level in range(len(self._chosen), -1, -1):
            if self._has_answer[level]:
                break
            self._has_answer[level] = True

    def _step_back(self) -> None:
        """Take the last decision back: its node has a failed branch now."""
        level = len(self._chosen) - 1
        self._decisions[level].undo(self._state, self._chosen.pop())
        self._has_failed[level] = True

    def _leave(self, level: int) -> int:
        """Leave a node whose branches are exhausted, and those above that fail too.

        :returns: the level of the first node that was left
        """
        if self._has_answer[level]:
            if level:
                self._decisions[level - 1].undo(self._state, self._chosen.pop())
            return level
        self._record(level)
        first = self._first_dead_end(level)
        while len(self._chosen) > first:
            self._step_back()
        if first < level:
            self._record(first)
        if first:
            self._step_back()
        else:
            self.is_unsatisfiable = True
        return first

    def _record(self, level: int) -> None:
        if len(self._nogoods) < MOST_NOGOODS:
            self._nogoods.add(self._key(level))

    def _key(self, level: int) -> Hashable:
        return self.symmetry.key(self._state, level, self._open_slots[level])

    def _is_dead_end(self, level: int) -> bool:
        """Tell whether a node that was just reached is known to have no answer."""
        if self._nogoods and self._key(level) in self._nogoods:
            return True
        if not self._has_failed[level - 1]:
            return False
        self._domains[level] = self._state.domains
        return not self._is_possible(level)

    def _first_dead_end(self, level: int) -> int:
        """Return the first level on the path to a dead end that is one already."""
        if level == 0 or self._is_possible(level):
            return level
        low, high = self._proven, level
        while low < high:
            middle = (low + high) // 2
            if self._has_answer[middle] or self._is_possible(middle):
                low = middle + 1
            else:
                high = middle
        self._proven = high
        return high

    def _is_possible(self, level: int) -> bool:
        """Tell whether the decisions before a level pass the relaxation."""
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

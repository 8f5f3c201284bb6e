"""The search at one anchor: backtracking over the decisions, with nogoods.

It goes forward without looking ahead. At the first dead end it tries to prove that
there is no answer at all; at each, it records the canonical form of the node.
"""

import functools
import itertools
from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import NamedTuple, Protocol

from placement.model.tree import Provider
from placement.search import bounds
from placement.search.plan import Slot
from placement.search.search import ROOT, Picks, Search, Tally
from placement.search.state import (
    Domains,
    PickRule,
    State,
    left_of,
    may_be_top,
    pick_rules,
)
from placement.search.symmetry import Symmetry

# How many picks a canonical form describes in as much time as one pick takes.
DESCRIBED_PER_PICK = 4
# How many providers relaxations compare with slots in that time.
COMPARED_PER_PICK = 16
# How many refused choices take as much time as one pick.
REFUSALS_PER_PICK = 8
# How many steps of an exact relaxation take as much time as one pick.
STEPS_PER_PICK = 16
# The part of a turn that the proof for a node other than the root may take.
INNER_SHARE = 16


class Assignment:
    """A depth-first walk through the tree of decisions at one anchor.

    A *node* is a partial assignment: the decisions before a level. For each node on the
    current path, ``_has_answer`` says whether it has led to an answer, and
    ``_has_failed`` whether one of its branches was a dead end. The relaxations of
    ``bounds`` do not show that the root has none if ``_may_serve``.

    :param domains: the providers that may serve each slot, at least one for each
    :param wanted: the bits that the picks together must have
    """

    def __init__(
        self, search: Search, root: Provider, domains: Domains, wanted: int
    ) -> None:
        self._search = search
        self._root = root
        self._domains = domains
        self._state = state = State(search.plan, domains, wanted)
        self._decisions, self._slots, self._served = order_decisions(
            state, pick_rules(search.plan, wanted), search.tally
        )
        state.serve_in_order(self._slots)
        depth = len(self._decisions)
        self._chosen: list[Provider] = []
        self._has_answer = [False] * depth
        self._has_failed = [False] * depth
        self._may_serve = False
        self._nogoods: Collection[Hashable] = ()

    @functools.cached_property
    def _symmetry(self) -> Symmetry:
        """Which providers are interchangeable here, worked out on first use."""
        return Symmetry(
            self._state, self._domains, self._root.uuid, self._search.numbers
        )

    def results(self) -> Iterator[Picks | None]:
        """Yield the picks of each way to serve all slots, and None to pause."""
        if self._search.nogoods:
            self._nogoods = self._search.nogoods.get(self._symmetry.shape, ())
        if ROOT in self._nogoods:
            return
        budget, state, decisions = self._search.budget, self._state, self._decisions
        last = len(decisions) - 1
        branches = [self._branches(0)]
        while branches:
            level = len(branches) - 1
            if budget.turn < 0:
                yield from self._pause(level)
                if not self._has_answer[0] and not self._is_possible(0):
                    # A larger share could prove more.
                    self._remember(ROOT, size=0)
                    return
            choice = self._choose(level, branches[level])
            if choice is None:
                del branches[self._leave(level) :]
            elif level == last:
                yield tuple([pick for pick in state.picks if pick])
                self._note_answer()
                decisions[level].undo(state, choice)
            else:
                self._chosen.append(choice)
                if self._is_dead_end(level + 1):
                    self._step_back()
                else:
                    branches.append(self._branches(level + 1))

    def _choose(self, level: int, options: Iterator[Provider]) -> Provider | None:
        """Make the next choice that the rules permit; None if no other is left."""
        tried = 0
        make, state = self._decisions[level].make, self._state
        for tried, choice in enumerate(options):
            if make(state, choice):
                self._search.budget.turn -= 1 + tried // REFUSALS_PER_PICK
                return choice
        self._search.budget.turn -= tried // REFUSALS_PER_PICK
        return None

    def _pause(self, level: int) -> Iterator[None]:
        """Wait at a level for a turn with something to spend."""
        while self._search.budget.turn < 0:
            if not self._search.tally.dead_ends:
                self._search.tally.fail(self._decisions[level].suffixes)
            yield None

    def _branches(self, level: int) -> Iterator[Provider]:
        """Enter a node, and return an iterator over its choices."""
        self._has_answer[level] = self._has_failed[level] = False
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
        """Undo the last decision: its node has a failed branch now."""
        level = len(self._chosen) - 1
        self._decisions[level].undo(self._state, self._chosen.pop())
        self._has_failed[level] = True

    def _leave(self, level: int) -> int:
        """Leave a node whose branches are exhausted, or all if there is no answer.

        :returns: the level of the first node that was left
        """
        if self._has_answer[level]:
            if level:
                self._decisions[level - 1].undo(self._state, self._chosen.pop())
            return level
        if not self._has_failed[level]:
            # Otherwise the groups after this one are hard to satisfy.
            self._search.tally.fail(self._decisions[level].suffixes)
        if not self._may_serve:
            # Most dead ends come from hosts that have no answer at all.
            self._may_serve = self._has_answer[0] or self._is_possible(0)
        if level == 0 or not self._may_serve:
            # The form of the anchor says everything.
            self._remember(ROOT, size=0)
            return 0
        self._remember(self._key(level), size=level + 1)
        self._step_back()
        return level

    def _remember(self, node: Hashable, size: int) -> None:
        """Remember that a node has no answer, by its canonical form."""
        self._nogoods = self._search.remember(self._symmetry.shape, node, size)

    def _key(self, level: int) -> Hashable:
        self._search.budget.turn -= len(self._chosen) // DESCRIBED_PER_PICK
        return self._symmetry.key(self._state, level, self._open_slots(level))

    def _open_slots(self, level: int) -> Sequence[Slot]:
        """Return the slots that are served from a level on."""
        return self._slots[self._served[level] :]

    def _is_dead_end(self, level: int) -> bool:
        """Return whether a node that was just reached is known to have no answer."""
        if self._nogoods and self._key(level) in self._nogoods:
            return True
        return self._has_failed[level - 1] and not self._is_possible(level)

    def _is_possible(self, level: int) -> bool:
        """Return whether the root, or the node just reached, passes all relaxations."""
        search, slots = self._search, self._open_slots(level)
        domains = self._state.domains if level else self._domains
        search.tally.proofs += 1
        compared = sum(len(domains[slot.number]) for slot in slots)
        search.budget.turn -= 1 + compared // COMPARED_PER_PICK
        # The root is worth the most: if it has no answer, there is none at the anchor.
        share = max(0, search.budget.turn) // (INNER_SHARE if level else 1)
        left = self._state.left if level else left_of(search.plan)
        possible, steps = bounds.is_possible(
            slots, domains, left, share * STEPS_PER_PICK
        )
        search.budget.turn -= steps // STEPS_PER_PICK
        return possible


class Decision(Protocol):
    """A variable to give a value to: the slot's provider, or a subtree's top.

    ``slot`` is the one that the choice serves, None if it decides a top. ``suffixes``
    name the groups that the choice is for.
    """

    slot: Slot | None
    suffixes: Sequence[str]

    def options(self, state: State) -> Sequence[Provider]:
        """Return the providers that may be chosen."""

    def make(self, state: State, provider: Provider) -> bool:
        """Choose a provider, if the rules permit it; return whether they did."""

    def undo(self, state: State, provider: Provider) -> None:
        """Undo the choice; the last choice must be undone first."""


class Serve:
    """Decide which provider serves a slot.

    :param previous: the last slot before this one that has the same want
    """

    def __init__(
        self,
        slot: Slot,
        previous: Slot | None,
        pick_rules: Sequence[PickRule],
        tally: Tally,
    ) -> None:
        self.slot: Slot | None = slot
        self.suffixes: Sequence[str] = [slot.suffix]
        self._slot = slot
        self._previous = previous
        self._rules = pick_rules
        self._tally = tally

    def options(self, state: State) -> Sequence[Provider]:
        """Return the domain of the slot.

        Providers that probably have nothing left come last.
        """
        domain = state.domains[self._slot.number]
        last = state.picks[self._previous.number] if self._previous else None
        if last is None or last not in domain:
            return domain
        following = domain.index(last) + 1
        return [*domain[following:], *domain[:following]]

    def make(self, state: State, provider: Provider) -> bool:
        """Let a provider serve the slot, unless a rule refuses it."""
        for rule in self._rules:
            if not rule(state, self._slot, provider):
                return False
        self._tally.picks += 1
        state.place(self._slot, provider)
        return True

    def undo(self, state: State, provider: Provider) -> None:
        """Free the slot."""
        state.remove(self._slot, provider)


class ChooseTop:
    """Decide the provider that is the ancestor of all picks for a ``same_subtree``.

    Each answer has exactly one such provider, so deciding it first neither adds nor
    loses answers. The domains keep only what is below it. It is decided before any of
    the slots is served.
    """

    def __init__(self, which: int, slots: Sequence[Slot]) -> None:
        self.slot: Slot | None = None
        self.suffixes: Sequence[str] = [slot.suffix for slot in slots]
        self._which = which
        self._slots = slots

    def options(self, state: State) -> Sequence[Provider]:
        """Return the providers that may serve any one of the slots."""
        united: dict[Provider, None] = {}
        for slot in self._slots:
            united.update(dict.fromkeys(state.domains[slot.number]))
        return list(united)

    def make(self, state: State, provider: Provider) -> bool:
        """Restrict the domains to what is below a provider, if none becomes empty."""
        narrowed: dict[int, Sequence[Provider]] = {}
        domains = list(state.domains)
        for slot in self._slots:
            domain = domains[slot.number]
            if id(domain) not in narrowed:
                narrowed[id(domain)] = [
                    below for below in domain if provider.covers(below)
                ]
            domains[slot.number] = narrowed[id(domain)]
            if not domains[slot.number]:
                return False
        if not any(may_be_top(state, slot, provider) for slot in self._slots):
            return False
        state.set_top(self._which, provider, domains)
        return True

    def undo(self, state: State, provider: Provider) -> None:
        """Give the slots their domains back."""
        state.unset_top(self._which)


class DecisionOrder(NamedTuple):
    """The decisions to take at an anchor, and the slots that they serve, in order.

    ``served`` is how many slots are served before each level, and at the end.
    """

    decisions: Sequence[Decision]
    slots: Sequence[Slot]
    served: Sequence[int]


def order_decisions(
    state: State, pick_rules: Sequence[PickRule], tally: Tally
) -> DecisionOrder:
    """Return a static order of decisions: the smallest domain first.

    It depends on nothing but the sizes of the domains, and on the rules.
    """
    decisions = tuple(_decide_all(state, pick_rules, tally))
    counts = itertools.accumulate(each.slot is not None for each in decisions)
    return DecisionOrder(
        decisions, [each.slot for each in decisions if each.slot], [0, *counts]
    )


def _decide_all(
    state: State, pick_rules: Sequence[PickRule], tally: Tally
) -> Iterator[Decision]:
    """Yield the decisions to take.

    The top of each ``same_subtree`` is decided before any slot that it constrains.
    """
    topped: set[int] = set()
    last_by_want: dict[int, Slot] = {}
    for slot in _in_order_of_serving(state):
        for which in slot.subtrees:
            if which not in topped:
                topped.add(which)
                members = state.plan.subtrees[which]
                bound = [state.plan.slots[member] for member in members]
                yield ChooseTop(which, bound)
        yield Serve(slot, last_by_want.get(slot.want), pick_rules, tally)
        last_by_want[slot.want] = slot


def _in_order_of_serving(state: State) -> Sequence[Slot]:
    """Return the slots; those that a ``same_subtree`` constrains together come first.

    Among these, and then among all, the smallest domain comes first, and among equal
    ones the slot that demands most.
    """
    slots = state.plan.slots
    together = [[slots[member] for member in each] for each in state.plan.subtrees]
    ordered: dict[Slot, None] = {}
    for some in [*together, slots]:
        hardest_first = sorted(
            some,
            key=lambda slot: (len(state.domains[slot.number]), -slot.share),
        )
        ordered.update(dict.fromkeys(hardest_first))
    return list(ordered)

"""The decisions that a search takes at one anchor, one after the other."""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from placement.model.tree import Provider
from placement.search import rules
from placement.search.plan import Slot
from placement.search.state import State
from placement.search.tally import Tally


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
        pick_rules: Sequence[rules.PickRule],
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
        if not any(rules.may_be_top(state, slot, provider) for slot in self._slots):
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
    state: State, pick_rules: Sequence[rules.PickRule], tally: Tally
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
    state: State, pick_rules: Sequence[rules.PickRule], tally: Tally
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

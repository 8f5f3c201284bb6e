"""The decisions that a search takes at one anchor, one after the other."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from placement.search import rules
from placement.search.model import Provider
from placement.search.plan import Slot
from placement.search.state import State


class Tally:
    """What a search did, for those who want to know: refusals by rule, and work."""

    def __init__(self) -> None:
        self.refusals: Counter[str] = Counter()
        self.picks = 0
        self.proofs = 0

    def refuse(self, rule: Callable[..., object]) -> None:
        """Count a refusal."""
        self.refusals[rule.__name__] += 1


class Decision(Protocol):
    """What there is to choose from, and what a choice does.

    ``slot`` is the one that the choice serves, if it does serve one.
    """

    slot: Slot | None

    def options(self, state: State) -> Sequence[Provider]:
        """Return the providers that may be chosen."""

    def make(self, state: State, provider: Provider) -> bool:
        """Choose a provider, if the rules permit. Tell whether they did."""

    def undo(self, state: State, provider: Provider) -> None:
        """Take the choice back, the last one first."""


class Serve:
    """Decide who serves a slot.

    :param previous: the slot served last by somebody of whom the same was wanted
    """

    def __init__(
        self,
        slot: Slot,
        previous: Slot | None,
        pick_rules: Sequence[rules.PickRule],
        tally: Tally,
    ) -> None:
        self.slot: Slot | None = slot
        self._slot = slot
        self._previous = previous
        self._rules = pick_rules
        self._tally = tally

    def options(self, state: State) -> Sequence[Provider]:
        """Return who may serve the slot.

        Those who are likely to have nothing left any more come last.
        """
        domain = state.domains[self._slot.number]
        last = state.picks[self._previous.number] if self._previous else None
        if last is None or last not in domain:
            return domain
        following = domain.index(last) + 1
        return [*domain[following:], *domain[:following]]

    def make(self, state: State, provider: Provider) -> bool:
        """Let a provider serve the slot."""
        for rule in self._rules:
            if not rule(state, self._slot, provider):
                self._tally.refuse(rule)
                return False
        self._tally.picks += 1
        state.place(self._slot, provider)
        return True

    def undo(self, state: State, provider: Provider) -> None:
        """Free the slot."""
        state.remove(self._slot, provider)


class Crown:
    """Decide which provider is the ancestor of all who serve a ``same_subtree``.

    Each answer has exactly one such provider, so deciding it first neither adds nor
    loses answers, and it leaves the slots with those below it. It is decided before any
    of them is served.
    """

    def __init__(self, which: int, members: Sequence[int], tally: Tally) -> None:
        self.slot: Slot | None = None
        self._which = which
        self._members = members
        self._tally = tally

    def options(self, state: State) -> Sequence[Provider]:
        """Return who may serve one of the slots."""
        eligible: dict[Provider, None] = {}
        for member in self._members:
            eligible.update(dict.fromkeys(state.domains[member]))
        return list(eligible)

    def make(self, state: State, provider: Provider) -> bool:
        """Leave the slots with those below a provider, if there are any for each."""
        narrowed: dict[int, Sequence[Provider]] = {}
        domains = list(state.domains)
        for member in self._members:
            domain = domains[member]
            if id(domain) not in narrowed:
                narrowed[id(domain)] = [
                    below for below in domain if provider.covers(below)
                ]
            domains[member] = narrowed[id(domain)]
            if not domains[member]:
                self._tally.refuse(rules.reaches_top)
                return False
        slots = [state.plan.slots[member] for member in self._members]
        if not any(rules.may_be_top(state, slot, provider) for slot in slots):
            self._tally.refuse(rules.leaves_room)
            return False
        state.crown(self._which, provider, domains)
        return True

    def undo(self, state: State, provider: Provider) -> None:
        """Give the slots back what they could be served by."""
        state.uncrown(self._which)


def decide_all(
    state: State, pick_rules: Sequence[rules.PickRule], tally: Tally
) -> Iterator[Decision]:
    """Return the decisions to take: what leaves least to choose from comes first.

    The top of each ``same_subtree`` is decided before any slot that it binds.
    """
    crowned: set[int] = set()
    last_by_want: dict[int, Slot] = {}
    for slot in _in_order_of_serving(state):
        for which in slot.subtrees:
            if which not in crowned:
                crowned.add(which)
                yield Crown(which, state.plan.subtrees[which], tally)
        yield Serve(slot, last_by_want.get(slot.want), pick_rules, tally)
        last_by_want[slot.want] = slot


def _in_order_of_serving(state: State) -> Sequence[Slot]:
    """Return the slots: those first that are bound together, or are hard to serve.

    It is hard to serve who has few to choose from, or wants much.
    """
    slots = state.plan.slots
    together = [[slots[member] for member in each] for each in state.plan.subtrees]
    ordered: dict[Slot, None] = {}
    for some in [*together, slots]:
        by_hardness = sorted(
            some,
            key=lambda slot: (len(state.domains[slot.number]), -slot.share),
        )
        ordered.update(dict.fromkeys(by_hardness))
    return list(ordered)

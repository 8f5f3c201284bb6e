"""The progress of the search at one anchor, and the rules for the next pick.

A rule is about a pick together with the picks before it. If a pick breaks one, further
picks never repair it. Constraints on single providers are in
``placement.model.constraint``.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TypeAlias

from placement.model.tree import Provider
from placement.search.plan import Plan, Slot

# The providers that may still serve each slot, by number of the slot.
Domains: TypeAlias = Sequence[Sequence[Provider]]


# How much is left, by number of the contended class, and by provider.
Left: TypeAlias = Sequence[dict[Provider, int]]


class Leftover(dict[Provider, int]):
    """How much of a contended class each provider has left: its room, until picked."""

    __slots__ = ("_plan", "_which")

    def __init__(self, plan: Plan, which: int) -> None:
        super().__init__()
        self._plan = plan
        self._which = which

    def __missing__(self, provider: Provider) -> int:
        room = self[provider] = self._plan.room(self._which, provider)
        return room


def left_of(plan: Plan) -> Left:
    """Return what is left before any pick, by number of the contended class."""
    return [Leftover(plan, which) for which in range(len(plan.contended))]


class State:
    """The partial assignment at one anchor, and what it leaves for the rest.

    ``left`` is keyed by number of the contended class, and by provider.
    ``picks`` are keyed by number of the slot, None if there is none yet. ``tops``, by
    number of the ``same_subtree``, are the providers chosen as the ancestors of all
    picks that it constrains. ``wanted`` has a bit for each quality that some pick must
    have, ``have`` those that the picks do have.
    """

    def __init__(self, plan: Plan, domains: Domains, wanted: int) -> None:
        self.plan = plan
        self.domains = domains
        self.wanted = wanted
        self.have = 0
        self.picks: list[Provider | None] = [None] * len(plan.slots)
        self.tops: list[Provider | None] = [None] * len(plan.subtrees)
        # These are for wanted bits only.
        self._reachable: list[int] = []
        self._following: list[int] = []
        self._choices: list[frozenset[int]] = []
        self.left = left_of(plan)
        self._used: dict[str, list[Provider]] = {}
        self._had: list[int] = []
        self._domains_before: list[Domains] = []
        self._bits: dict[tuple[bool, Provider], int] = {}

    def serve_in_order(self, order: Sequence[Slot]) -> None:
        """Prepare for slots to be served in an order."""
        if not self.wanted:
            return
        self._reachable = [0] * len(order)
        self._following = [0] * len(order)
        self._choices = [
            frozenset(self.bits_of(slot, each) for each in self.domains[slot.number])
            for slot in order
        ]
        reachable = 0
        for place in range(len(order) - 1, -1, -1):
            self._reachable[order[place].number] = reachable
            self._following[order[place].number] = place + 1
            reachable = functools.reduce(operator.or_, self._choices[place], reachable)

    def may_follow(self, slot: Slot, bits: int) -> bool:
        """Return whether the slots after one may contribute bits, one pick each."""
        if bits & ~self._reachable[slot.number]:
            return False
        missing = bits.bit_count()
        for place in range(self._following[slot.number], len(self._choices)):
            if missing <= 0:
                break
            choices = self._choices[place]
            missing -= max((bits & each).bit_count() for each in choices)
        return missing <= 0

    def bits_of(self, slot: Slot, provider: Provider) -> int:
        """Return the wanted bits that a pick contributes."""
        key = (not slot.suffix, provider)
        bits = self._bits.get(key)
        if bits is None:
            bits = self._bits[key] = self.plan.bits_of(slot, provider) & self.wanted
        return bits

    def used_in(self, root_uuid: str) -> Provider | None:
        """Return the provider of a tree from which resources were last taken."""
        used = self._used.get(root_uuid)
        return used[-1] if used else None

    def used(self) -> frozenset[tuple[str, Provider]]:
        """Return the giving provider of each tree, if there may be only one."""
        return frozenset(
            (root_uuid, used[-1]) for root_uuid, used in self._used.items() if used
        )

    def place(self, slot: Slot, provider: Provider) -> None:
        """Make a pick."""
        self.picks[slot.number] = provider
        for which, amount in slot.demands:
            self.left[which][provider] -= amount
        if self.wanted:
            self._had.append(self.have)
            self.have |= self.bits_of(slot, provider)
        if slot.amounts and not self.plan.nested:
            self._used.setdefault(provider.root_uuid, []).append(provider)

    def remove(self, slot: Slot, provider: Provider) -> None:
        """Undo the last pick."""
        self.picks[slot.number] = None
        for which, amount in slot.demands:
            self.left[which][provider] += amount
        if self.wanted:
            self.have = self._had.pop()
        if slot.amounts and not self.plan.nested:
            self._used[provider.root_uuid].pop()

    def set_top(self, which: int, top: Provider, domains: Domains) -> None:
        """Set the top of a ``same_subtree``, and thereby the domains of the slots."""
        self.tops[which] = top
        self._domains_before.append(self.domains)
        self.domains = domains

    def unset_top(self, which: int) -> None:
        """Undo the last such decision."""
        self.tops[which] = None
        self.domains = self._domains_before.pop()


PickRule: TypeAlias = Callable[[State, Slot, Provider], bool]


def leaves_room(state: State, slot: Slot, provider: Provider) -> bool:
    """Return whether a provider has room for what all groups take from it together.

    ``group_policy=isolate``: no provider serves two suffixed groups. Each provider
    has one unit of :data:`plan.ISOLATION` for them.
    """
    # For so few, a generator takes longer.
    for which, amount in slot.demands:  # noqa: SIM110
        if amount > state.left[which][provider]:
            return False
    return True


def reaches_top(state: State, slot: Slot, provider: Provider) -> bool:
    """Return whether one provider may be the ancestor of all of a ``same_subtree``.

    That ancestor is already decided; it must still serve one of the slots.
    """
    for which in slot.subtrees:
        top = state.tops[which]
        if top is None or top is provider:
            continue
        members = state.plan.subtrees[which]
        if not any(
            may_be_top(state, state.plan.slots[member], top)
            for member in members
            if member != slot.number
        ):
            return False
    return True


def may_be_top(state: State, slot: Slot, top: Provider) -> bool:
    """Return whether the top of a ``same_subtree`` serves a slot, or may serve it."""
    pick = state.picks[slot.number]
    if pick:
        return pick is top
    return top in state.domains[slot.number] and leaves_room(state, slot, top)


def reaches_traits(state: State, slot: Slot, provider: Provider) -> bool:
    """Return whether the group without suffix may have all its traits together."""
    have = state.have | state.bits_of(slot, provider)
    return state.may_follow(slot, state.wanted & ~have)


def gives_alone(state: State, slot: Slot, provider: Provider) -> bool:
    """Return whether at most one provider of each tree is used, as before 1.29."""
    if not slot.amounts:
        return True
    used = state.used_in(provider.root_uuid)
    return used is None or used is provider


def pick_rules(plan: Plan, wanted: int) -> tuple[PickRule, ...]:
    """Return the rules by which the picks of a plan can exclude each other.

    :param wanted: the bits that all picks together must have
    """
    rules: dict[PickRule, object] = {
        leaves_room: plan.contended,
        reaches_top: plan.subtrees,
        reaches_traits: wanted,
        gives_alone: not plan.nested and len(plan.slots) > 1,
    }
    return tuple(rule for rule, matters in rules.items() if matters)

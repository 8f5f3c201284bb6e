"""The progress of the search at one anchor."""

import functools
import operator
from collections.abc import Sequence
from typing import TypeAlias

from placement.model.tree import Provider
from placement.search.plan import Plan, Slot

# The providers that may still serve each slot, by number of the slot.
Domains: TypeAlias = Sequence[Sequence[Provider]]


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
        self.left = [Leftover(plan, which) for which in range(len(plan.contended))]
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

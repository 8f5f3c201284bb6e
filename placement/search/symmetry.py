"""Canonical forms under symmetry: of providers, of nodes, and of whole anchors.

Nothing here leaves out an answer. Equal forms show that the search has failed before,
at a node or anchor that differs from this one only in the names of its providers.
"""

import functools
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

from placement.model.tree import Provider
from placement.search.plan import Slot
from placement.search.state import Domains, State

# A number for each description, so that long ones are compared only once.
Numbers: TypeAlias = dict[Hashable, int]
# The decisions about a provider: the amounts taken, by number of the contended
# class; and the number of each ``same_subtree`` of which it is the top, with whether it
# was picked.
Mark: TypeAlias = tuple[tuple[int, ...], tuple[tuple[int, bool], ...]]


class Symmetry:
    """Which providers at one anchor are interchangeable.

    Two are interchangeable if no slot can distinguish them. If ``same_subtree`` makes
    their place in the tree matter, what is below them must be interchangeable, too.

    :param domains: the domains of the slots before any decision
    :param numbers: the numbers of the whole search
    """

    def __init__(
        self, state: State, domains: Domains, root_uuid: str, numbers: Numbers
    ) -> None:
        self._plan = state.plan
        self._wanted = state.wanted
        self._root_uuid = root_uuid
        self._numbers = numbers
        self._profiles = self._profile_all(state, domains)
        self._members = sorted(
            (
                provider
                for provider in self._profiles
                if provider.root_uuid == root_uuid
            ),
            key=lambda provider: provider.position,
        )
        self._above: dict[Provider, Provider | None] = {}
        self._forms: dict[Provider, int] = {}
        if self._plan.subtrees:
            self._look_at_tree()

    def _number(self, description: Hashable) -> int:
        return self._numbers.setdefault(description, len(self._numbers))

    def _profile_all(self, state: State, domains: Domains) -> dict[Provider, int]:
        """Return a number for everything that slots can see of each provider."""
        seen: dict[Provider, int] = {}
        bits: dict[Provider, int] = {}
        for slot in {slot.want: slot for slot in self._plan.slots}.values():
            for provider in domains[slot.number]:
                seen[provider] = seen.get(provider, 0) | 1 << slot.want
                bits[provider] = bits.get(provider, 0) | state.bits_of(slot, provider)
        return {
            provider: self._number(
                (wants, bits[provider], self._sizes(provider), self._tree(provider))
            )
            for provider, wants in seen.items()
        }

    def _sizes(self, provider: Provider) -> tuple[int, ...]:
        classes = range(len(self._plan.contended))
        return tuple(self._plan.room(which, provider) for which in classes)

    def _tree(self, provider: Provider) -> str | None:
        """Return the tree of a provider if it matters, otherwise None."""
        if self._plan.nested or provider.root_uuid == self._root_uuid:
            return None
        return provider.root_uuid

    def _look_at_tree(self) -> None:
        """Find the next member above each one, and number the form of its subtree."""
        below: dict[Provider | None, list[int]] = {}
        path: list[Provider] = []
        for provider in self._members:
            while path and not path[-1].covers(provider):
                path.pop()
            self._above[provider] = path[-1] if path else None
            path.append(provider)
        for provider in reversed(self._members):
            forms = tuple(sorted(below.pop(provider, ())))
            form = self._number((self._profiles[provider], forms))
            self._forms[provider] = form
            below.setdefault(self._above[provider], []).append(form)

    @functools.cached_property
    def shape(self) -> Hashable:
        """Return the canonical form of the anchor.

        Anchors of equal form have the same answers except for the names of providers.
        """
        if not self._plan.subtrees:
            alike = Counter(self._profiles.values())
            return self._wanted, frozenset(alike.items())
        foreign = frozenset(
            (provider.uuid, profile)
            for provider, profile in self._profiles.items()
            if provider.root_uuid != self._root_uuid
        )
        tops = (self._forms[top] for top, above in self._above.items() if not above)
        return self._wanted, foreign, frozenset(Counter(tops).items())

    def key(self, state: State, level: int, slots: Sequence[Slot]) -> Hashable:
        """Return the canonical form of a node: equal nodes all have answers, or none.

        :param slots: the slots that are still to be served
        """
        marks: dict[Provider, Mark] = {
            provider: (tuple(amounts), ())
            for provider, amounts in self._taken(state, slots).items()
        }
        for which in sorted({which for slot in slots for which in slot.subtrees}):
            top = state.tops[which]
            if top:
                amounts, tops = marks.get(top, ((), ()))
                marks[top] = amounts, (*tops, (which, self._is_picked(state, which)))
        return level, state.have, state.used(), self._describe(marks)

    def _taken(self, state: State, slots: Sequence[Slot]) -> dict[Provider, list[int]]:
        """Return what is taken from each provider, of the classes that slots demand."""
        matters = {which for slot in slots for which, _ in slot.demands}
        taken: dict[Provider, list[int]] = {}
        for slot, provider in zip(self._plan.slots, state.picks, strict=True):
            if provider is None:
                continue
            for which, amount in slot.demands:
                if which in matters:
                    amounts = taken.setdefault(
                        provider, [0] * len(self._plan.contended)
                    )
                    amounts[which] += amount
        return taken

    def _is_picked(self, state: State, which: int) -> bool:
        """Return whether the top of a ``same_subtree`` was picked for a slot of it."""
        members = self._plan.subtrees[which]
        return any(state.picks[member] is state.tops[which] for member in members)

    def _describe(self, marks: Mapping[Provider, Mark]) -> Hashable:
        """Describe providers with their marks, but without their names."""
        if not self._plan.nested:
            # The first provider of a tree excludes the others: none can be exchanged.
            return frozenset(marks.items())
        if not self._plan.subtrees:
            kinds = ((self._profiles[each], mark) for each, mark in marks.items())
            return frozenset(Counter(kinds).items())
        foreign = frozenset(
            (provider, mark)
            for provider, mark in marks.items()
            if provider.root_uuid != self._root_uuid
        )
        return foreign, self._describe_tree(marks)

    def _describe_tree(self, marks: Mapping[Provider, Mark]) -> Hashable:
        """Describe the members with marks and their ancestors, from the leaves up."""
        changed: set[Provider] = set()
        for provider in marks.keys() & self._above.keys():
            above: Provider | None = provider
            while above and above not in changed:
                changed.add(above)
                above = self._above[above]
        below: dict[Provider | None, Counter[Hashable]] = {}
        for provider in sorted(changed, key=lambda each: -each.position):
            form = (
                self._forms[provider],
                marks.get(provider),
                frozenset(below.pop(provider, Counter()).items()),
            )
            below.setdefault(self._above[provider], Counter())[form] += 1
        return frozenset(below.get(None, Counter()).items())

"""What is the same but for its name: providers, dead ends, and whole trees.

Nothing here leaves out an answer. It tells that a search has failed before, with other
providers that are like these in all that matters to the request.
"""

import itertools
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

from placement.search.model import Provider
from placement.search.plan import SEAT, Slot
from placement.search.state import Domains, State

# Numbers for descriptions, so that equal ones are compared once.
Numbers: TypeAlias = dict[Hashable, int]


class Symmetry:
    """Which providers at one anchor can stand in for each other.

    Two are of a kind if all slots see the same in them. If ``same_subtree`` makes their
    place in the tree matter, they must be children of the same parent as well, above
    nobody else who matters.

    :param domains: what each slot may be served by, before any decision
    :param numbers: those of the whole search
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
        self._kinds = dict(self._kind_all())

    def _number(self, description: Hashable) -> int:
        return self._numbers.setdefault(description, len(self._numbers))

    def _profile_all(self, state: State, domains: Domains) -> dict[Provider, int]:
        """Return a number for all that the slots see in each provider."""
        seen: dict[Provider, int] = {}
        bits: dict[Provider, int] = {}
        for slot in {slot.want: slot for slot in self._plan.slots}.values():
            for provider in domains[slot.number]:
                seen[provider] = seen.get(provider, 0) | 1 << slot.want
                bits[provider] = bits.get(provider, 0) | state.bits_of(slot, provider)
        return {
            provider: self._number(
                (wants, bits[provider], self._rooms(provider), self._tree(provider))
            )
            for provider, wants in seen.items()
        }

    def _rooms(self, provider: Provider) -> tuple[int, ...]:
        return tuple(
            self._plan.room(which, provider)
            if name == SEAT or name in provider.stocks
            else 0
            for which, name in enumerate(self._plan.contended)
        )

    def _tree(self, provider: Provider) -> str | None:
        """Tell the trees apart where it matters which one a provider is in."""
        if self._plan.nested or provider.root_uuid == self._root_uuid:
            return None
        return provider.root_uuid

    def _kind_all(self) -> Iterator[tuple[Provider, Hashable]]:
        if not self._plan.nested:
            # Who gives first decides for its tree, so each one is of its own kind.
            yield from zip(self._profiles, self._profiles, strict=True)
        elif not self._plan.subtrees:
            yield from self._profiles.items()
        else:
            for provider in self._profiles:
                if provider.root_uuid != self._root_uuid:
                    yield provider, provider
            followers = itertools.zip_longest(self._members, self._members[1:])
            for provider, following in followers:
                yield provider, self._sibling_kind(provider, following)

    def _sibling_kind(self, provider: Provider, following: Provider | None) -> Hashable:
        """Return the kind of a member, given the next one who matters."""
        if following and provider.covers(following):
            return provider
        return provider.parent_uuid, self._profiles[provider]

    def shape(self) -> Hashable:
        """Return what the anchor is like: equal ones have the same answers.

        The names of the providers in the answers apart, that is.
        """
        if not self._plan.subtrees:
            alike = Counter(self._profiles.values())
            return self._wanted, frozenset(alike.items())
        strangers = frozenset(
            (provider.uuid, profile)
            for provider, profile in self._profiles.items()
            if provider.root_uuid != self._root_uuid
        )
        return self._wanted, strangers, self._forms()

    def _forms(self) -> tuple[int, ...]:
        """Describe the members of the tree by numbers, with all who are below them."""
        forms: list[int] = []
        path: list[tuple[Provider, list[int]]] = []
        for provider in [*self._members, None]:
            while path and not (provider and path[-1][0].covers(provider)):
                top, below = path.pop()
                form = self._number((self._profiles[top], tuple(sorted(below))))
                (path[-1][1] if path else forms).append(form)
            if provider:
                path.append((provider, []))
        return tuple(sorted(forms))

    def key(self, state: State, level: int, slots: Sequence[Slot]) -> Hashable:
        """Return what matters of a state: equal ones have the same dead ends.

        :param slots: those that are still to be served
        """
        unfinished = {which for slot in slots for which in slot.subtrees}
        bound = tuple(self._bound(state, which) for which in sorted(unfinished))
        pinned = {provider for _, providers in bound for provider in providers}
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
        kinds = Counter(
            (provider if provider in pinned else self._kinds[provider], tuple(amounts))
            for provider, amounts in taken.items()
        )
        return level, state.have, bound, state.givers(), frozenset(kinds.items())

    def _bound(self, state: State, which: int) -> tuple[bool, tuple[Provider, ...]]:
        """Return the top of a ``same_subtree``, and whether somebody picked it."""
        top = state.tops[which]
        if top is None:
            return False, ()
        return any(
            state.picks[member] is top for member in self._plan.subtrees[which]
        ), (top,)

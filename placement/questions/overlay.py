"""A snapshot as it is after some claims, and the search for further ones."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TypeAlias

from placement.model.constraint import Resources
from placement.model.request import Request
from placement.model.tree import Provider, Snapshot, Tree
from placement.search.engine import Candidate, Firsts
from placement.search.search import Budget

# The amounts of a candidate, by provider as it was at some moment.
Taken: TypeAlias = Mapping[Provider, Mapping[str, int]]


class Overlay:
    """The trees that can matter to a request, as they are after some claims of it.

    ``moves`` counts the claims that took from a provider that serves several trees: a
    candidate found before the last of them may no longer fit. ``budget`` is that of the
    search, which begins anew after each of these.

    :param make_budget: returns the budget of one search
    """

    def __init__(
        self, snapshot: Snapshot, request: Request, make_budget: Callable[[], Budget]
    ) -> None:
        self.snapshot = snapshot
        self._request = request
        self._make_budget = make_budget
        # Providers from which something was taken, by the UUID of the root and theirs.
        self._changed: dict[str, dict[str, Provider]] = {}
        self.moves = 0
        self._search(snapshot)
        self._at_first = self._firsts

    def afresh(self) -> "Overlay":
        """Forget all claims, and return this."""
        self._changed = {}
        if self.moves:
            self.moves = 0
            self._search(self.snapshot)
        return self

    def current(self, tree: Tree) -> Tree:
        """Return a tree as it is now."""
        changed = self._changed.get(tree.root.uuid)
        if changed is None:
            return tree
        return Tree(tuple([changed.get(each.uuid, each) for each in tree.members]))

    def first(self, tree: Tree) -> tuple[Candidate | None, bool]:
        """Return the first candidate of a host, if any.

        :returns: the candidate; and, if there is none, whether that is certain
        """
        return self._firsts.at(self.current(tree))

    def is_certain(self, tree: Tree) -> bool:
        """Return whether no other choices would have left a full host room for more.

        That is so if each candidate picks one provider, or there is nothing to choose,
        and if other hosts do not take from the same providers.
        """
        if not self.is_by_itself(tree):
            return False
        if tree.root.uuid not in self._changed:
            return True
        domains = self._at_first.domains(tree)
        return len(domains) == 1 or all(len(domain) == 1 for domain in domains)

    def is_by_itself(self, tree: Tree) -> bool:
        """Return whether a host takes nothing from providers that serve others."""
        return not self.snapshot.sharing or not any(
            provider.shares
            for domain in self._at_first.domains(tree)
            for provider in domain
        )

    def times(self, taken: Taken) -> int:
        """Return how many times amounts can be taken; once, if they just fit."""
        return min(
            self._now(provider).inventories[name].free // amount
            for provider, amounts in taken.items()
            for name, amount in amounts.items()
        )

    def fits(self, taken: Taken) -> bool:
        """Return whether amounts can be taken once."""
        return all(
            Resources(None, tuple(amounts.items())).meets(self._now(provider))
            for provider, amounts in taken.items()
        )

    def take(self, taken: Taken, times: int = 1) -> None:
        """Take amounts off."""
        shared = False
        for provider, amounts in taken.items():
            changed = self._changed.setdefault(provider.root_uuid, {})
            changed[provider.uuid] = self._now(provider).taking(amounts, times)
            shared = shared or provider.shares
        if shared:
            self.moves += 1
            sharing = tuple(map(self._now, self.snapshot.sharing))
            self._search(dataclasses.replace(self.snapshot, sharing=sharing))

    def _now(self, provider: Provider) -> Provider:
        """Return a provider as it is now."""
        changed = self._changed.get(provider.root_uuid)
        return changed.get(provider.uuid, provider) if changed else provider

    def _search(self, snapshot: Snapshot) -> None:
        """Search from now on with the sharing providers of a snapshot."""
        self.budget = self._make_budget()
        self._firsts = Firsts(snapshot, self._request, self.budget)

"""A forest without the amounts that a request has already placed."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from placement.forest.forest import Forest, Trees
from placement.model.request import Request
from placement.model.tree import Provider, Snapshot, Tree
from placement.search import engine
from placement.search.engine import Candidate
from placement.search.search import Budget, Limits

# The amounts of a candidate, by UUID of the provider and by resource class.
Amounts: TypeAlias = Mapping[str, Mapping[str, int]]


class Overlay:
    """The trees that can matter to a request, as they are after some placements.

    ``moves`` counts the placements that took from a provider that serves several trees:
    a candidate found before the last of them may no longer fit.
    """

    def __init__(
        self,
        forest: Forest,
        request: Request,
        limits: Limits,
        aggregates: frozenset[str] | None = None,
    ) -> None:
        self._forest = forest
        self._request = request
        self._limits = limits
        self._base = forest.relevant(request, aggregates=aggregates)
        self._snapshot = self._base
        self._changed: dict[str, Tree] = {}
        self._at_first = self._firsts = engine.Firsts(
            self._base, request, Budget(limits)
        )
        self.moves = 0

    def afresh(self) -> "Overlay":
        """Forget all placements, and return this."""
        self._changed = {}
        if self.moves:
            self._renew()
            self.moves = 0
        return self

    @property
    def snapshot(self) -> Snapshot:
        """The trees before any placement, and the sharing providers after them."""
        return self._snapshot

    @property
    def is_used_up(self) -> bool:
        """Whether the budget of the search is used up."""
        return self._firsts.is_used_up

    def trees(self, start: float) -> Iterator[Tree]:
        """Yield the trees that may serve, from some place on, as ``relevant`` does."""
        trees = self._base.trees
        return iter(trees.beginning(start) if isinstance(trees, Trees) else trees)

    def enlarge_share(self) -> None:
        """Give hosts that are hard to search a larger part of the budget."""
        self._firsts.enlarge_share()

    def current(self, tree: Tree) -> Tree:
        """Return a tree as it is now."""
        return self._changed.get(tree.root.uuid, tree)

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
        return not self._base.sharing or not any(
            provider.shares
            for domain in self._at_first.domains(tree)
            for provider in domain
        )

    def times(self, amounts: Amounts) -> int:
        """Return how many times amounts can be taken; once, if they just fit."""
        return min(
            (
                self._member(uuid).inventories[name].free // amount
                for uuid, resources in amounts.items()
                for name, amount in resources.items()
            ),
            default=0,
        )

    def fits(self, amounts: Amounts) -> bool:
        """Return whether amounts can be taken once."""
        for uuid, resources in amounts.items():
            if self._forest.tree_of(uuid) is None:
                return False
            inventories = self._member(uuid).inventories
            for name, amount in resources.items():
                if name not in inventories or not inventories[name].fits(amount):
                    return False
        return True

    def take(self, amounts: Amounts, times: int = 1) -> None:
        """Take amounts off."""
        shared = False
        for uuid, resources in amounts.items():
            tree = self._tree(uuid)
            members = tuple(
                member.taking(resources, times) if member.uuid == uuid else member
                for member in tree.members
            )
            self._changed[tree.root.uuid] = Tree(members, tree.aggregates)
            shared = shared or self._member(uuid).shares
        if shared:
            self._renew()

    def _renew(self) -> None:
        """Search from now on with sharing providers as they have become."""
        self.moves += 1
        sharing = tuple(self._member(each.uuid) for each in self._base.sharing)
        self._snapshot = dataclasses.replace(self._base, sharing=sharing)
        self._firsts = engine.Firsts(
            self._snapshot, self._request, Budget(self._limits)
        )

    def _tree(self, uuid: str) -> Tree:
        return self.current(self._base.tree_by_uuid[uuid])

    def _member(self, uuid: str) -> Provider:
        return next(each for each in self._tree(uuid).members if each.uuid == uuid)


def hosts_of(forest: Forest, uuids: Iterable[str]) -> list[Provider]:
    """Return the hosts that a consumer is on, given the providers that it uses.

    These are the roots of the providers that serve only their own trees; if it uses
    none of these, the roots of all.
    """
    trees = [(uuid, forest.tree_of(uuid)) for uuid in sorted(uuids)]
    pairs = [
        (member, tree.root)
        for uuid, tree in trees
        if tree
        for member in tree.members
        if member.uuid == uuid
    ]
    own = [root for member, root in pairs if not member.shares]
    return list(dict.fromkeys(own or [root for _, root in pairs]))

"""A forest without what a request has already placed, and the places in domains."""

import collections
import dataclasses
import sys
from collections.abc import Iterable, Iterator, Sequence

from placement.forest.forest import Forest, Trees
from placement.model.inventory import all_fit
from placement.model.request import Request
from placement.model.tree import Provider, Snapshot, Tree
from placement.questions.placing.query import Amounts, Domains, Spread
from placement.search import engine
from placement.search.engine import Candidate
from placement.search.search import Budget, Limits


class Overlay:
    """The trees that can matter to a request, as they are after some placements.

    ``moves`` counts the placements that took from a provider that serves several trees:
    a candidate found before the last of them may no longer fit. ``budget`` is that of
    the search.
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
        self.budget = Budget(limits)
        self._at_first = self._firsts = engine.Firsts(self._base, request, self.budget)
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

    def trees(self, start: float) -> Iterator[Tree]:
        """Yield the trees that may serve, from some place on, as ``relevant`` does."""
        trees = self._base.trees
        return iter(trees.beginning(start) if isinstance(trees, Trees) else trees)

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
        times = []
        for uuid, resources in amounts.items():
            inventories = self._member(uuid).inventories
            times += [inventories[name].free // n for name, n in resources.items()]
        return min(times, default=0)

    def fits(self, amounts: Amounts) -> bool:
        """Return whether amounts can be taken once."""
        return all(
            self._forest.tree_of(uuid)
            and all_fit(self._member(uuid).inventories, resources.items())
            for uuid, resources in amounts.items()
        )

    def take(self, amounts: Amounts, times: int = 1) -> None:
        """Take amounts off."""
        shared = False
        for uuid, resources in amounts.items():
            tree = self._tree(uuid)
            members = list(tree.members)
            at = next(at for at, each in enumerate(members) if each.uuid == uuid)
            members[at] = members[at].taking(resources, times)
            self._changed[members[0].uuid] = Tree(tuple(members), tree.aggregates)
            shared = shared or members[at].shares
        if shared:
            self._renew()

    def _renew(self) -> None:
        """Search from now on with sharing providers as they have become."""
        self.moves += 1
        sharing = tuple(self._member(each.uuid) for each in self._base.sharing)
        self._snapshot = dataclasses.replace(self._base, sharing=sharing)
        self.budget = Budget(self._limits)
        self._firsts = engine.Firsts(self._snapshot, self._request, self.budget)

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


def domains_of(host: Provider, domains: Domains) -> tuple[str, ...]:
    """Return the domains that a host is in, by UUID."""
    if domains.aggregates is None:
        return (host.uuid,)
    return tuple(each for each in domains.aggregates if each in host.aggregates)


def common_domains(hosts: Sequence[Provider], domains: Domains) -> frozenset[str]:
    """Return the domains that all of some hosts are in."""
    each = [frozenset(domains_of(host, domains)) for host in hosts]
    return frozenset.intersection(*each) if each else frozenset()


class Occupied:
    """The consumers in each domain of a spread; without one, there is no bound."""

    def __init__(self, spread: Spread | None) -> None:
        self._spread = spread
        self._counts: collections.Counter[str] = collections.Counter()

    def copy(self) -> "Occupied":
        """Return the same counts, to go on from."""
        other = Occupied(self._spread)
        other._counts = self._counts.copy()
        return other

    def add(self, hosts: Iterable[Provider], times: int = 1) -> None:
        """Count consumers, each of them on some hosts."""
        if self._spread:
            domains = self._spread.domains
            for name in {each for host in hosts for each in domains_of(host, domains)}:
                self._counts[name] += times

    def room(self, hosts: Iterable[Provider]) -> int:
        """Return how many more consumers may be on some hosts, all on each of them."""
        if self._spread is None:
            return sys.maxsize
        most = sys.maxsize
        for host in hosts:
            names = domains_of(host, self._spread.domains)
            left = [self._spread.at_most - self._counts[name] for name in names]
            most = min(most, *left) if left else 0
        return max(most, 0)

    def left(self) -> dict[str, int]:
        """Return how many more consumers each of some listed domains may have."""
        spread = self._spread
        names = (spread and spread.domains.aggregates) or ()
        most = spread.at_most if spread else 0
        return {name: max(0, most - self._counts[name]) for name in names}

    def overlap_at(self, host: Provider) -> bool:
        """Return whether a host counts in several domains."""
        spread = self._spread
        return spread is not None and len(domains_of(host, spread.domains)) > 1

"""Placing consumers one after another: the best host for each, of those considered."""

import collections
import dataclasses
import heapq
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from placement.forest.forest import Forest, Trees
from placement.model.inventory import all_fit
from placement.model.tree import Provider, Snapshot, Tree
from placement.questions.placing.query import (
    Amounts,
    Domains,
    Preference,
    Quality,
    Spread,
    Wish,
)
from placement.search import engine
from placement.search.engine import Candidate
from placement.search.search import Budget, Limits

# The amounts of a candidate, by provider as it was at some moment.
Taken: TypeAlias = Mapping[Provider, Mapping[str, int]]


def _has_trait(tree: Tree, name: str, taken: Amounts) -> float:
    return float(any(name in member.traits for member in tree.members))


def _is_member(tree: Tree, name: str, taken: Amounts) -> float:
    return float(name in tree.root.aggregates)


def _is_host(tree: Tree, name: str, taken: Amounts) -> float:
    return float(tree.root.uuid == name)


def _free(tree: Tree, name: str, taken: Amounts) -> float:
    """Return the free part of the capacity of a class; 0 if there is none."""
    capacity = free = 0
    for member in tree.members:
        inventory = member.inventories.get(name)
        if inventory:
            capacity += inventory.capacity
            free += inventory.free - taken.get(member.uuid, {}).get(name, 0)
    return min(max(free / capacity, 0.0), 1.0) if capacity > 0 else 0.0


VALUES: Mapping[Quality, Callable[[Tree, str, Amounts], float]] = {
    Quality.TRAIT: _has_trait,
    Quality.AGGREGATE: _is_member,
    Quality.HOST: _is_host,
    Quality.FREE: _free,
}


class Score:
    """Adds up the values that a list of preferences gives to a tree."""

    def __init__(self, prefer: Sequence[Preference]) -> None:
        # Looked up once, and not for each of the trees.
        self._parts = [
            (each.weight, VALUES[each.quality], each.name) for each in prefer
        ]

    def of(self, tree: Tree, taken: Amounts) -> float:
        """Return the sum of the weighted values of a tree.

        :param taken: the amounts of a placement; they count for the free parts
        """
        return sum(
            [weight * value(tree, name, taken) for weight, value, name in self._parts]
        )

    def of_each(self, tree: Tree, taken: Amounts, times: int) -> list[float]:
        """Return the scores of placements that follow each other on a tree.

        :param taken: the amounts of each of them
        """
        return [self.of(tree, _times(taken, number)) for number in range(1, times + 1)]


def _times(amounts: Amounts, number: int) -> Amounts:
    return {
        uuid: {name: number * amount for name, amount in each.items()}
        for uuid, each in amounts.items()
    }


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """The candidate for one consumer, and the host that it is on.

    ``mappings`` are the UUIDs of the providers that serve each group, by suffix. There
    is no score without preferences.
    """

    amounts: Amounts
    mappings: Mapping[str, tuple[str, ...]]
    host: Provider
    score: float | None


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


class Overlay:
    """The trees that can matter to a wish, as they are after some placements.

    ``moves`` counts the placements that took from a provider that serves several trees:
    a candidate found before the last of them may no longer fit. ``budget`` is that of
    the search.
    """

    def __init__(
        self,
        forest: Forest,
        wish: Wish,
        limits: Limits,
        aggregates: frozenset[str] | None = None,
    ) -> None:
        self.forest = forest
        self.wish = wish
        self._limits = limits
        self._base = forest.relevant(wish.request, aggregates=aggregates)
        # Providers from which something was taken, by the UUID of the root and theirs.
        self._changed: dict[str, dict[str, Provider]] = {}
        self.moves = 0
        self._search(self._base)
        self._at_first = self._firsts

    def afresh(self) -> "Overlay":
        """Forget all placements, and return this."""
        self._changed = {}
        if self.moves:
            self.moves = 0
            self._search(self._base)
        return self

    def trees(
        self, start: float, only: tuple[str, Domains] | None = None
    ) -> Iterator[Tree]:
        """Yield the trees that the spread has a place for, from some place on.

        :param start: the place, as ``relevant`` has it
        :param only: a domain, and what counts as one; None means all
        """
        spread, trees = self.wish.spread, self._base.trees
        for tree in trees.beginning(start) if isinstance(trees, Trees) else trees:
            if spread and not domains_of(tree.root, spread.domains):
                continue
            if only is None or only[0] in domains_of(tree.root, only[1]):
                yield tree

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
        return not self._base.sharing or not any(
            provider.shares
            for domain in self._at_first.domains(tree)
            for provider in domain
        )

    def taken(self, amounts: Amounts) -> Taken:
        """Return amounts by provider, without those of providers that are gone."""
        providers = ((self.forest.provider(uuid), uuid) for uuid in amounts)
        return {provider: amounts[uuid] for provider, uuid in providers if provider}

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
            all_fit(self._now(provider).inventories, amounts.items())
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
            sharing = tuple(map(self._now, self._base.sharing))
            self._search(dataclasses.replace(self._base, sharing=sharing))

    def _now(self, provider: Provider) -> Provider:
        """Return a provider as it is now."""
        changed = self._changed.get(provider.root_uuid)
        return changed.get(provider.uuid, provider) if changed else provider

    def _search(self, snapshot: Snapshot) -> None:
        """Search from now on with the sharing providers of a snapshot."""
        self.budget = Budget(self._limits)
        self._firsts = engine.Firsts(snapshot, self.wish.request, self.budget)


@dataclasses.dataclass(slots=True, order=True)
class _Offer:
    """A host that serves; the best comes first, and equal ones in random order."""

    rank: float
    draw: float
    tree: Tree = dataclasses.field(compare=False)
    found: Candidate = dataclasses.field(compare=False)
    taken: Taken = dataclasses.field(compare=False)
    amounts: Amounts = dataclasses.field(compare=False)
    host: Provider = dataclasses.field(compare=False)
    score: float | None = dataclasses.field(compare=False)
    moves: int = dataclasses.field(compare=False)

    def choice(self) -> Choice:
        """Return the choice of this host; most of those considered are not chosen."""
        mappings = {
            suffix: tuple(provider.uuid for provider in serving)
            for suffix, serving in self.found.mappings().items()
        }
        return Choice(self.amounts, mappings, self.host, self.score)


class Filling:
    """Fills hosts with consumers that all have the same request.

    ``considered`` counts the hosts that were scored. ``certain`` says that no order of
    placements would have found room for more, ``exhausted`` that the budget of the
    search ended before it was known.
    """

    def __init__(self, here: Overlay, occupied: Occupied, rng: random.Random) -> None:
        wish = here.wish
        self._here = here
        self._occupied = occupied
        self._rng = rng
        self._most = wish.consider if wish.prefer else 1
        self._score = Score(wish.prefer) if wish.prefer else None
        # The score of a host changes with each placement there.
        self._varies = any(each.quality is Quality.FREE for each in wish.prefer)
        self._offers: list[_Offer] = []
        # Whether all hosts have been looked at.
        self._at_end = False
        self._hard: list[Tree] = []
        self.considered = 0
        self.certain = True
        self.exhausted = False

    def place(self, trees: Iterator[Tree], wanted: int) -> list[Choice]:
        """Return choices for as many consumers as there is room for.

        :param trees: the hosts to consider, in their order
        """
        chosen: list[Choice] = []
        while len(chosen) < wanted:
            self._consider(trees)
            if not self._offers:
                if not self._try_harder():
                    break
                trees, self._hard = iter(self._hard), []
                self._at_end = False
                continue
            chosen += self._take(heapq.heappop(self._offers), wanted - len(chosen))
        return chosen

    def _consider(self, trees: Iterator[Tree]) -> None:
        """Look at hosts until so many are known to serve as may be considered."""
        if len(self._offers) >= self._most:
            return
        for tree in trees:
            if self._offer(tree):
                self.considered += 1
                if len(self._offers) >= self._most:
                    return
        self._at_end = True

    def _try_harder(self) -> bool:
        """Return whether hosts that were hard to search are worth another look."""
        if not self._hard:
            return False
        if self._here.budget.is_used_up:
            self.exhausted = True
            self.certain = False
            return False
        self._here.budget.enlarge_share()
        return True

    def _offer(self, tree: Tree) -> bool:
        """Offer a host if it serves; return whether it does."""
        if not self._occupied.room([tree.root]):
            overlaps = self._occupied.overlap_at(tree.root)
            if overlaps or not self._here.is_by_itself(tree):
                self.certain = False
            return False
        first, decided = self._here.first(tree)
        if first is None:
            if not decided:
                self._hard.append(tree)
            elif not self._here.is_certain(tree):
                self.certain = False
            return False
        taken = first.amounts()
        amounts = {provider.uuid: each for provider, each in taken.items()}
        host = self._host(tree, taken)
        if not self._occupied.room([host]):
            self.certain = False
            return False
        value = None
        if self._score:
            value = self._score.of(self._here.current(tree), amounts)
        heapq.heappush(
            self._offers,
            _Offer(
                -(value or 0),
                self._rng.random(),
                tree,
                first,
                taken,
                amounts,
                host,
                value,
                self._here.moves,
            ),
        )
        return True

    def _host(self, tree: Tree, taken: Taken) -> Provider:
        """Return the root of a tree, unless all comes from other trees that share."""
        for provider in taken:
            if provider.root_uuid == tree.root.uuid:
                return tree.root
        return hosts_of(self._here.forest, [provider.uuid for provider in taken])[0]

    def _take(self, offer: _Offer, wanted: int) -> list[Choice]:
        """Place consumers on a host, as long as it stays the best; then look again."""
        here, room = self._here, self._occupied.room([offer.host])
        is_good = offer.moves == here.moves or here.fits(offer.taken)
        if not room or not is_good:
            self._offer(offer.tree)
            return []
        times = min(wanted, room)
        if times > 1:
            # Alone, a host stays the best.
            is_best = not self._varies or (self._at_end and not self._offers)
            times = max(1, min(times, here.times(offer.taken))) if is_best else 1
        choices = self._choices(offer, times)
        here.take(offer.taken, times)
        self._occupied.add([offer.host], times)
        if times < wanted:
            self._offer(offer.tree)
        return choices

    def _choices(self, offer: _Offer, times: int) -> list[Choice]:
        """Return the choices of a host for consumers that are placed one by one."""
        first = offer.choice()
        if times == 1 or not (self._score and self._varies):
            return [first] * times
        tree = self._here.current(offer.tree)
        scores = self._score.of_each(tree, offer.amounts, times)
        return [
            Choice(first.amounts, first.mappings, first.host, score) for score in scores
        ]

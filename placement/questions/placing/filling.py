"""Placing consumers one after another: the best host for each, of those considered."""

import collections
import dataclasses
import heapq
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from placement.forest.forest import Forest
from placement.model.tree import Provider, Tree
from placement.questions.overlay import Overlay, Taken
from placement.questions.placing.query import (
    Amounts,
    Domains,
    Preference,
    Quality,
    Spread,
    Wish,
)
from placement.search.engine import Candidate


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

    def __init__(
        self,
        forest: Forest,
        wish: Wish,
        here: Overlay,
        occupied: Occupied,
        rng: random.Random,
    ) -> None:
        self._forest = forest
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
        return hosts_of(self._forest, [provider.uuid for provider in taken])[0]

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

"""Choosing a candidate for each consumer of a request. Nothing here needs SQL."""

import collections
import dataclasses
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence

from placement import errors
from placement.forest.forest import Forest, Trees
from placement.model.request import Request
from placement.model.resource_class import UNKNOWN_CLASS
from placement.model.trait import UNKNOWN_TRAIT
from placement.model.tree import Tree
from placement.questions import name
from placement.questions.overlay import Overlay, Taken
from placement.questions.placing import packing
from placement.questions.placing.filling import (
    Choice,
    Filling,
    Occupied,
    common_domains,
    domains_of,
    hosts_of,
)
from placement.questions.placing.query import Amounts, Domains, Quality, Wish
from placement.search.search import Budget, Limits


@dataclasses.dataclass(frozen=True, slots=True)
class Present:
    """Where consumers are already: the providers that each uses, by its UUID.

    ``own`` are consumers of this request, ``beside`` those that its spread names.
    """

    own: Mapping[str, Sequence[str]]
    beside: Mapping[str, Sequence[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Chosen:
    """The choices for some consumers, fewer than wanted if there is no room for more.

    ``exact`` says that it is certain that no more could be placed. If it is not, and
    the search was ``exhausted``, its budget ran out before that was known.
    """

    choices: tuple[Choice, ...]
    considered: int
    exact: bool
    exhausted: bool


def check_names(forest: Forest, wish: Wish) -> None:
    """Check the names in a wish.

    :raises BadRequest: a trait, resource class or aggregate does not exist
    """
    words = forest.vocabulary
    name.check_all(wish.request, words)
    if wish.prefer:
        named = collections.defaultdict(list)
        for each in wish.prefer:
            named[each.quality].append(each.name)
        name.refuse_unknown(named[Quality.TRAIT], words.trait_ids, UNKNOWN_TRAIT)
        name.refuse_unknown(named[Quality.FREE], words.class_ids, UNKNOWN_CLASS)
    for domains in (wish.spread and wish.spread.domains, wish.together):
        for uuid in (domains and domains.aggregates) or ():
            inside = forest.relevant(Request(()), frozenset({uuid})).trees
            if next(iter(inside), None) is None:
                raise errors.BadRequest(f"No resource provider is in aggregate {uuid}.")


def choose(
    forest: Forest,
    wish: Wish,
    wanted: int,
    present: Present,
    limits: Limits,
    *,
    kept: Sequence[Choice] = (),
    taken: Iterable[Choice] = (),
    rng: random.Random | None = None,
) -> Chosen:
    """Choose candidates for consumers that all have the same request.

    :param kept: earlier choices for the first of them: those that are still good are
        kept, if there is room for all others
    :param taken: choices for other requests; a spread does not count them
    :raises BadRequest: a name does not exist
    """
    check_names(forest, wish)
    asked = _Asked(forest, wish, limits, rng or random.Random())
    if wish.together:
        return asked.together(wish.together, present, wanted)
    here, occupied = asked.overlay(_listed(wish)), asked.occupied(present)
    for choice in taken:
        here.take(_taken(forest, choice.amounts))
    good = _take_again(forest, here, occupied, kept)
    filling = asked.filling(here, occupied.copy())
    choices = [*good, *filling.place(asked.trees(here), wanted - len(good))]
    is_short = len(choices) < wanted
    if is_short and good:
        return choose(forest, wish, wanted, present, limits, taken=taken, rng=rng)
    chosen = _chosen([filling], choices, wanted)
    if is_short and not (filling.certain or filling.exhausted) and _listed(wish):
        packed = asked.pack(occupied, wanted)
        if len(packed.choices) >= len(choices):
            return packed
        return dataclasses.replace(packed, choices=chosen.choices)
    return chosen


def _taken(forest: Forest, amounts: Amounts) -> Taken:
    """Return amounts by provider, without those of providers that are gone."""
    providers = ((forest.provider(uuid), uuid) for uuid in amounts)
    return {provider: amounts[uuid] for provider, uuid in providers if provider}


def _take_again(
    forest: Forest, here: Overlay, occupied: Occupied, choices: Iterable[Choice]
) -> list[Choice]:
    """Take the choices that are still good, and return them."""
    good = []
    for choice in choices:
        taken = _taken(forest, choice.amounts)
        is_there = len(taken) == len(choice.amounts)
        if is_there and here.fits(taken) and occupied.room([choice.host]):
            here.take(taken)
            occupied.add([choice.host])
            good.append(choice)
    return good


def _listed(wish: Wish) -> frozenset[str] | None:
    """Return the aggregates of which hosts must be in one; None if in none of them."""
    listed = wish.spread.domains.aggregates if wish.spread else None
    return None if listed is None else frozenset(listed)


def _chosen(
    fillings: Sequence[Filling], choices: Sequence[Choice], wanted: int
) -> Chosen:
    exhausted = any(each.exhausted for each in fillings)
    certain = all(each.certain for each in fillings) and not exhausted
    return Chosen(
        tuple(choices),
        sum(each.considered for each in fillings),
        len(choices) >= wanted or certain,
        exhausted,
    )


class _Asked:
    """A wish, and the forest for it."""

    def __init__(
        self, forest: Forest, wish: Wish, limits: Limits, rng: random.Random
    ) -> None:
        self._forest = forest
        self._wish = wish
        self._limits = limits
        self.rng = rng

    def overlay(self, within: frozenset[str] | None) -> Overlay:
        """Return the trees that can matter, or only those in some aggregates."""
        request = self._wish.request
        relevant = self._forest.relevant(request, aggregates=within)
        return Overlay(relevant, request, lambda: Budget(self._limits))

    def filling(self, here: Overlay, occupied: Occupied) -> Filling:
        """Return what fills the hosts of an overlay."""
        return Filling(self._forest, self._wish, here, occupied, self.rng)

    def trees(
        self, here: Overlay, only: tuple[str, Domains] | None = None
    ) -> Iterator[Tree]:
        """Yield the trees that the spread has a place for, from a random place on.

        :param only: a domain, and what counts as one; None means all
        """
        spread, trees, start = self._wish.spread, here.snapshot.trees, self.rng.random()
        for tree in trees.beginning(start) if isinstance(trees, Trees) else trees:
            if spread and not domains_of(tree.root, spread.domains):
                continue
            if only is None or only[0] in domains_of(tree.root, only[1]):
                yield tree

    def occupied(self, present: Present) -> Occupied:
        """Return how many consumers the domains have by now."""
        occupied = Occupied(self._wish.spread)
        for used in {**present.beside, **present.own}.values():
            occupied.add(hosts_of(self._forest, used))
        return occupied

    def pack(self, occupied: Occupied, wanted: int) -> Chosen:
        """Choose hosts in overlapping domains such that most of the consumers fit.

        For each kind of host, so many choices are made as its domains could take; how
        many of them count is decided afterwards.
        """
        here = self.overlay(_listed(self._wish))
        domains = self._wish.spread.domains if self._wish.spread else Domains(None)
        pools: dict[packing.Kind, list[Choice]] = {}
        fillings = []
        for tree in self.trees(here):
            kind = domains_of(tree.root, domains)
            pool = pools.setdefault(kind, [])
            missing = min(wanted, occupied.room([tree.root])) - len(pool)
            if missing > 0:
                filling = self.filling(here, Occupied(None))
                pool += filling.place(iter([tree]), missing)
                fillings.append(filling)
        # All that a choice takes may come from providers that share with its tree.
        for kind, pool in pools.items():
            pool[:] = [each for each in pool if domains_of(each.host, domains) == kind]
        rooms = {kind: len(pool) for kind, pool in pools.items()}
        numbers, is_exact = packing.pack(rooms, occupied.left(), wanted)
        choices = [
            choice
            for kind, number in numbers.items()
            for choice in pools[kind][:number]
        ]
        chosen = _chosen(fillings, choices[:wanted], wanted)
        is_known = is_exact or len(choices) >= wanted
        return dataclasses.replace(
            chosen,
            exact=chosen.exact and is_known,
            exhausted=chosen.exhausted or not is_known,
        )

    def together(self, domains: Domains, present: Present, wanted: int) -> Chosen:
        """Choose the domain that takes most of the consumers, and of these the best."""
        occupied = self.occupied(present)
        allowed = None
        for used in present.own.values():
            common = common_domains(hosts_of(self._forest, used), domains)
            allowed = common if allowed is None else allowed & common
        best: tuple[float, float] = (0, 0.0)
        best_choices: list[Choice] = []
        fillings: list[Filling] = []
        complete = 0
        for filling, trees in self._attempts(domains, occupied, allowed):
            choices = filling.place(trees, wanted)
            fillings.append(filling)
            rank = len(choices), sum(each.score or 0 for each in choices)
            if not best_choices or rank > best:
                best, best_choices = rank, choices
            complete += len(choices) >= wanted
            if complete >= (self._wish.consider if self._wish.prefer else 1):
                break
        return _chosen(fillings, best_choices, wanted)

    def _attempts(
        self, domains: Domains, occupied: Occupied, allowed: frozenset[str] | None
    ) -> Iterator[tuple[Filling, Iterator[Tree]]]:
        """Yield each domain in turn: what fills it, and its trees."""
        if domains.aggregates is None:
            everything = self.overlay(None)
            for tree in self.trees(everything):
                if allowed is None or tree.root.uuid in allowed:
                    here = everything.afresh()
                    yield self.filling(here, occupied.copy()), iter([tree])
            return
        names = [
            each for each in domains.aggregates if allowed is None or each in allowed
        ]
        for each in self.rng.sample(names, len(names)):
            here = self.overlay(frozenset({each}))
            filling = self.filling(here, occupied.copy())
            yield filling, self.trees(here, (each, domains))

"""The search for allocation candidates: lazy, pruned, in a fixed order.

Each root of a tree is an *anchor*: candidates draw on its tree and on the providers
that share with it. The anchors are searched one by one, only as far as answers are
wanted. They take turns, within the budget of the search.
"""

import dataclasses
import functools
import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from placement.model.constraint import (
    Constraint,
    Resources,
    TraitRequired,
    meets_all,
    select,
)
from placement.model.request import Group, Request
from placement.model.tree import Provider, Snapshot, Tree
from placement.search import bounds, plan
from placement.search.assignment import Assignment
from placement.search.plan import Slot, Want
from placement.search.search import Budget, Limits, Picks, Search, Tally
from placement.search.state import Domains

# The answers at an anchor: none, one that takes no search, or more.
Answers: TypeAlias = Picks | Iterator[Picks | None] | None


class Candidate(NamedTuple):
    """One way to serve a request: the provider of each slot, in their order."""

    slots: tuple[Slot, ...]
    providers: Picks

    def amounts(self) -> dict[Provider, dict[str, int]]:
        """Return what is taken, by provider and then by resource class."""
        amounts: dict[Provider, dict[str, int]] = {}
        for slot, provider in zip(self.slots, self.providers, strict=True):
            if slot.amounts:
                of_provider = amounts.setdefault(provider, {})
                for name, amount in slot.amounts:
                    of_provider[name] = of_provider.get(name, 0) + amount
        return amounts

    def mappings(self) -> dict[str, list[Provider]]:
        """Return the providers that serve each group, each once, by suffix."""
        mappings: dict[str, list[Provider]] = {}
        for slot, provider in zip(self.slots, self.providers, strict=True):
            serving = mappings.setdefault(slot.suffix, [])
            if provider not in serving:
                serving.append(provider)
        return mappings

    def providers_used(self) -> Iterator[Provider]:
        """Yield the providers from which something is taken."""
        return used_by((self,))


def used_by(candidates: Sequence[Candidate]) -> Iterator[Provider]:
    """Yield the providers from which candidates of one search take something."""
    if not candidates:
        return iter(())
    picks = itertools.chain.from_iterable([each.providers for each in candidates])
    takes = [bool(slot.amounts) for slot in candidates[0].slots]
    return itertools.compress(picks, itertools.cycle(takes))


def search(
    snapshot: Snapshot,
    request: Request,
    *,
    depth_first: bool = False,
    shuffle: random.Random | None = None,
    most: int | None = None,
    tally: Tally | None = None,
    limits: Limits | None = None,
) -> Iterator[Candidate]:
    """Yield every allocation candidate, each once, as far as the budget goes.

    :param depth_first: whether all candidates of an anchor come before those of the
        next; otherwise each anchor gives one in turn
    :param shuffle: puts things into a random order
    :param most: how many candidates to generate; those that take from several
        providers of a tree count as well if they are dropped afterwards
    :param tally: counts what was done, and shows at the end whether the budget has
        ended the search
    :param limits: the budget; None means the default one
    """
    if most is None or request.nested:
        candidates = _generate(snapshot, request, depth_first, shuffle, tally, limits)
        return itertools.islice(candidates, most)
    anything = dataclasses.replace(request, nested=True)
    candidates = _generate(snapshot, anything, depth_first, shuffle, tally, limits)
    return filter(_takes_once_per_tree, itertools.islice(candidates, most))


def _takes_once_per_tree(candidate: Candidate) -> bool:
    used = set(candidate.providers_used())
    return len({provider.root_uuid for provider in used}) == len(used)


def _generate(
    snapshot: Snapshot,
    request: Request,
    depth_first: bool,
    shuffle: random.Random | None,
    tally: Tally | None,
    limits: Limits | None,
) -> Iterator[Candidate]:
    made = plan.make(snapshot, request)
    if made is None:
        return iter(())
    common = Search(made, shuffle, tally, Budget(limits))
    anchors = Anchors(snapshot, common)
    answers = take_turns(anchors.in_order(), common, depth_first=depth_first)
    if snapshot.sharing:
        answers = _without_repeats(answers, frozenset(snapshot.sharing))
    return map(functools.partial(Candidate, made.slots), answers)


def _without_repeats(
    found: Iterator[Picks], sharing: frozenset[Provider]
) -> Iterator[Picks]:
    """Yield picks, each once: those of sharing providers come up at many anchors."""
    seen: set[Picks] = set()
    for picks in found:
        if sharing.issuperset(picks):
            if picks in seen:
                continue
            seen.add(picks)
        yield picks


def serving(
    snapshot: Snapshot,
    request: Request,
    trees: Iterable[Tree] | None = None,
    *,
    limits: Limits | None = None,
) -> Iterator[tuple[Tree, bool | None]]:
    """Yield for each tree whether some candidate has its root as the anchor.

    Each tree is considered by itself: a candidate of sharing providers alone counts for
    every tree that they share with.

    :param trees: the trees to consider; None means all
    :param limits: what may be spent on each tree, and on all; None means the default
    :returns: the trees in their order, each with the answer; None if the budget ended
        before it was found
    """
    firsts = Firsts(snapshot, request, Budget(limits))
    for tree in snapshot.trees if trees is None else trees:
        candidate, is_certain = firsts.at(tree)
        yield tree, candidate is not None or (False if is_certain else None)


class Firsts:
    """Finds the first candidate of one anchor after another, within one budget.

    The same tree may be passed again with less room.

    :param budget: the budget, which other searches may share
    """

    def __init__(self, snapshot: Snapshot, request: Request, budget: Budget) -> None:
        made = plan.make(snapshot, request)
        self._anchors = made and Anchors(
            snapshot, Search(made, budget=budget), distinct=False
        )

    def at(self, tree: Tree) -> tuple[Candidate | None, bool]:
        """Return the first candidate that has the root of a tree as its anchor, if any.

        :returns: the candidate; and, if there is none, whether that is certain
        """
        return self._anchors.first(tree) if self._anchors else (None, True)

    def domains(self, tree: Tree) -> list[Sequence[Provider]]:
        """Return the providers that may be picked for each slot.

        Each provider is considered by itself: whether picks go together is not checked.
        There are none if the root does not suit, or if a slot has nothing to pick from.
        """
        return self._anchors.domains(tree) if self._anchors else []


def is_served(
    snapshot: Snapshot, request: Request, group: Group, limits: Limits | None = None
) -> bool:
    """Return whether some suitable anchor has a choice for one group by itself.

    If the budget ends before that is known, the group counts as served.
    """
    alone = dataclasses.replace(
        request, groups=(group,), isolate=False, same_subtree=(), nested=True
    )
    tally = Tally()
    candidate = next(search(snapshot, alone, tally=tally, limits=limits), None)
    return candidate is not None or tally.exhausted


class Anchor:
    """The answers of one anchor, and where the search for them has paused.

    :param results: yields the picks of each answer, and None to pause
    """

    __slots__ = ("_budget", "_free", "_results", "is_exhausted")

    def __init__(self, results: Iterator[Picks | None], search: Search) -> None:
        self._results = results
        self._budget = search.budget
        self._free = search.free_picks
        self.is_exhausted = False

    def take_turn(self) -> Picks | None:
        """Return the next answer; None if there is none, or none within the share.

        The picks of an answer are counted in addition to those that led to it.
        """
        budget = self._budget
        if not budget.begin_turn(self._free):
            return None
        try:
            picks = next(self._results)
        except StopIteration:
            picks = None
            self.is_exhausted = True
        self._free = budget.end_turn(len(picks or ()))
        return picks


class _Offer:
    """A want, and what an anchor can offer for it.

    For the group without suffix, the anchor must meet what is ``of_anchor``, too, and
    if it meets what is ``of_tree``, all members of its tree do.
    """

    def __init__(self, want: Want) -> None:
        about_root = want.constraints if want.spreads else ()
        self.constraints = want.constraints
        self._of_anchor = [each for each in about_root if each.of_anchor]
        self._of_tree = [each for each in about_root if each.of_tree]
        self._rest = [each for each in want.constraints if each not in self._of_tree]

    def members(self, tree: Tree) -> Sequence[Provider] | None:
        """Return the members of a tree that suit the want; None if nothing may."""
        if not meets_all(tree.root, self._of_anchor):
            return None
        is_member = self._of_tree and meets_all(tree.root, self._of_tree)
        return select(tree.members, self._rest if is_member else self.constraints)


class Anchors:
    """The anchors of one search, and the domains of the slots at each.

    :param distinct: whether to leave out candidates that an earlier anchor has
    """

    def __init__(
        self,
        snapshot: Snapshot,
        search: Search,
        *,
        distinct: bool = True,
    ) -> None:
        self._snapshot = snapshot
        self._of_root = search.plan.of_root
        self._search = search
        self._sharing = frozenset(snapshot.sharing)
        self._want_of_slot = [slot.want for slot in search.plan.slots]
        # Constraints on several picks: rules, and bits that they have together.
        self._is_free = search.plan.is_free
        self._bits = search.plan.bound - 1
        self._may_repeat = distinct and bool(self._sharing)
        self._is_plain = self._is_free and not self._sharing
        self._met: set[tuple[frozenset[Provider], ...]] = set()

    # Often, nothing needs these: trees of one provider are answers as they are.
    @functools.cached_property
    def _offers(self) -> Sequence[_Offer]:
        return [_Offer(want) for want in self._search.plan.wants]

    @functools.cached_property
    def _attached(self) -> Callable[[int, frozenset[str]], Sequence[Provider]]:
        return _attached_that_suit(self._snapshot, self._offers)

    @functools.cached_property
    def _of_alone(self) -> Sequence[Constraint]:
        """What a provider must meet to serve all slots by itself."""
        plan = self._search.plan
        listed = [each for want in plan.wants for each in want.constraints]
        listed += [TraitRequired(None, tuple(each)) for each in plan.spread_traits]
        # Resources of several slots are of different classes: otherwise they would be
        # contended.
        amounts = [each.value for each in listed if isinstance(each, Resources)]
        together = Resources(None, tuple(itertools.chain.from_iterable(amounts)))
        others = [each for each in listed if not isinstance(each, Resources)]
        return [*dict.fromkeys(others), together]

    def in_order(self) -> Iterator[Anchor | Picks]:
        """Yield the anchors that may have answers, or the only answer of one."""
        tally, of_root = self._search.tally, self._of_root
        trees: Sequence[Tree] = self._snapshot.trees
        if self._search.shuffle:
            trees = self._search.shuffle.sample(trees, len(trees))
        for tree in trees:
            tally.anchors += 1
            if of_root and not meets_all(tree.root, of_root):
                continue
            answers = self._answers(tree)
            if isinstance(answers, tuple):
                yield answers
            elif answers is not None:
                yield Anchor(answers, self._search)

    def first(self, tree: Tree) -> tuple[Candidate | None, bool]:
        """Return the first candidate of an anchor; if none, whether that is certain."""
        if self._of_root and not meets_all(tree.root, self._of_root):
            return None, True
        picks = self._answers(tree)
        if picks is None:
            return None, True
        if not isinstance(picks, tuple):
            anchor = Anchor(picks, self._search)
            picks = anchor.take_turn()
            if picks is None:
                return None, anchor.is_exhausted
        return Candidate(self._search.plan.slots, picks), True

    def domains(self, tree: Tree) -> list[Sequence[Provider]]:
        """Return the providers for each slot; nothing if a slot has none."""
        if not meets_all(tree.root, self._of_root):
            return []
        return self._domains(tree) or []

    def _answers(self, tree: Tree) -> Answers:
        """Return the picks of all candidates at an anchor, each once; None to pause."""
        if self._is_plain and len(tree.members) == 1:
            # Most trees of most clouds.
            is_met = meets_all(tree.root, self._of_alone)
            return tree.members * len(self._want_of_slot) if is_met else None
        domains = self._domains(tree)
        if domains is None:
            return None
        wanted = self._wanted(domains) if self._bits or self._may_repeat else 0
        if not self._is_free or wanted:
            if not bounds.are_enough(self._search.plan, domains):
                return None
            return Assignment(self._search, tree.root, domains, wanted).results()
        # No constraint is about more than one pick.
        picks = tuple([domain[0] for domain in domains])
        if sum(map(len, domains)) == len(picks):
            return picks
        return itertools.product(*self._shuffled(domains))

    def _shuffled(self, domains: Domains) -> Domains:
        if not self._search.shuffle:
            return domains
        return [self._search.shuffle.sample(each, len(each)) for each in domains]

    def _domains(self, tree: Tree) -> list[Sequence[Provider]] | None:
        """Return the providers for each slot; None if a slot has none."""
        by_want = []
        for number, offer in enumerate(self._offers):
            domain = offer.members(tree)
            if domain is None:
                return None
            if self._sharing:
                attached = self._attached(number, tree.aggregates)
                domain = _with_attached(domain, attached, tree)
            if not domain:
                return None
            by_want.append(domain)
        return [by_want[number] for number in self._want_of_slot]

    def _wanted(self, domains: Domains) -> int:
        """Return the bits that the picks must have together and may lack."""
        plan, wanted = self._search.plan, self._bits
        if self._may_repeat and self._have_met(domains):
            wanted |= plan.bound
        if not wanted:
            return 0
        for slot, domain in zip(plan.slots, domains, strict=True):
            if not wanted:
                break
            certain = wanted
            for provider in domain:
                certain &= plan.bits_of(slot, provider)
                if not certain:
                    break
            wanted &= ~certain
        return wanted

    def _have_met(self, domains: Domains) -> bool:
        """Return whether an earlier anchor had the same sharing providers to pick from.

        Then all their combinations come up there, and here some pick must be a provider
        that serves only this tree.
        """
        sharing = []
        for domain in domains:
            if self._sharing.isdisjoint(domain):
                return False
            sharing.append(self._sharing.intersection(domain))
        combinations = tuple(sharing)
        if combinations in self._met:
            return True
        self._met.add(combinations)
        return False


def _with_attached(
    domain: Sequence[Provider], attached: Sequence[Provider], tree: Tree
) -> Sequence[Provider]:
    """Return a domain with the providers of other trees that share with a tree."""
    if not attached:
        return domain
    here = tree.root.uuid
    others = [each for each in attached if each.root_uuid != here]
    return [*domain, *others] if domain else others


def _attached_that_suit(
    snapshot: Snapshot, offers: Sequence[_Offer]
) -> Callable[[int, frozenset[str]], list[Provider]]:
    """Return a function that finds the providers that share with a tree and suit.

    It takes the number of a want and the aggregates of the tree, and remembers what it
    has found. A cached method would do the same, but its object would refer to itself
    and so keep the snapshot in memory until the garbage collector runs, which is rare.

    :param offers: the wants, by number
    """

    @functools.cache
    def suits(number: int, provider: Provider) -> bool:
        return meets_all(provider, offers[number].constraints)

    @functools.cache
    def attached(number: int, aggregates: frozenset[str]) -> list[Provider]:
        return [
            provider
            for provider in snapshot.sharing_with(aggregates)
            if suits(number, provider)
        ]

    return attached


def take_turns(
    anchors: Iterable[Anchor | Picks], search: Search, *, depth_first: bool
) -> Iterator[Picks]:
    """Yield the answers of anchors in turn, those of hard anchors at the end.

    An anchor is hard if it spends its share without an answer. It goes on with a larger
    share when no other has answers left. No anchor begins before its turn has come.

    :param anchors: the anchors; an answer stands for an anchor that has no other
    """
    budget = search.budget
    forgotten = Anchor(iter(()), search)
    hard: list[Anchor] = []
    while True:
        rest: list[Anchor] = []
        for anchor in anchors:
            if isinstance(anchor, tuple):
                # Its free picks are enough for a single answer.
                yield anchor
                continue
            while (picks := anchor.take_turn()) is not None:
                yield picks
                if not depth_first:
                    rest.append(anchor)
                    break
            else:
                if not anchor.is_exhausted:
                    # With a budget that is used up the anchor never goes on: it would
                    # keep its domains in memory until the last anchor is done.
                    hard.append(forgotten if budget.is_used_up else anchor)
        if not rest:
            search.tally.pauses += len(hard)
            if not hard or budget.is_used_up:
                search.tally.exhausted = bool(hard)
                return
            budget.enlarge_share()
            rest, hard = hard, []
        anchors = rest

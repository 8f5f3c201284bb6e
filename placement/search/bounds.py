"""Relaxations: proofs that nothing fits, which look at a part of the constraints.

Each contended class is looked at by itself, as a packing problem: the slots that demand
it are items, the providers are bins. If a relaxation has no answer, the problem has
none; if it has one, the problem may still have none.
"""

import bisect
import functools
import itertools
import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from placement.search.model import Provider
from placement.search.plan import Plan, Slot
from placement.search.state import Domains

# The sums of amounts are enumerated for bins of up to that many units.
MOST_UNITS = 1 << 14

# How much of a contended class, given by number, a provider has left.
Left: TypeAlias = Callable[[int, Provider], int]


def is_possible(
    plan: Plan, slots: Sequence[Slot], domains: Domains, left: Left
) -> bool:
    """Tell whether providers may have enough left to serve some slots together."""
    remaining = _remaining(slots, domains, left)
    for which in range(len(plan.contended)):
        items = [
            (amount, remaining[slot.number])
            for slot in slots
            for demanded, amount in slot.demands
            if demanded == which
        ]
        if not _may_be_packed(items, functools.partial(left, which)):
            return False
    return True


def are_enough(plan: Plan, domains: Domains) -> bool:
    """Tell whether there may be enough for all slots, by the quickest relaxation.

    It counts how many of the smallest demand each provider could take.
    """
    for which in range(len(plan.contended)):
        amounts, domain_by_id = [], {}
        for slot in plan.slots:
            for demanded, amount in slot.demands:
                if demanded == which:
                    amounts.append(amount)
                    domain = domains[slot.number]
                    domain_by_id[id(domain)] = domain
        providers = set().union(*domain_by_id.values())
        least = min(amounts)
        missing = len(amounts)
        for provider in providers:
            missing -= plan.room(which, provider) // least
            if missing <= 0:
                break
        else:
            return False
    return True


def _remaining(
    slots: Sequence[Slot], domains: Domains, left: Left
) -> dict[int, Sequence[Provider]]:
    """Return what is left of the domain of each slot by itself, by its number."""
    remaining: dict[int, Sequence[Provider]] = {}
    known: dict[tuple[int, tuple[tuple[int, int], ...]], Sequence[Provider]] = {}
    for slot in slots:
        domain = domains[slot.number]
        key = (id(domain), slot.demands)
        if key not in known:
            known[key] = [
                provider
                for provider in domain
                if all(
                    amount <= left(which, provider) for which, amount in slot.demands
                )
            ]
        remaining[slot.number] = known[key]
    return remaining


def _may_be_packed(
    items: Sequence[tuple[int, Sequence[Provider]]],
    left: Callable[[Provider], int],
) -> bool:
    """Tell whether a relaxation packs items into bins, each into one of its domain.

    :param items: the amount of each, and its domain
    """
    if not all(domain for _, domain in items):
        return False
    amounts = sorted(amount for amount, _ in items)
    distinct = {id(domain): domain for _, domain in items}.values()
    sizes = {provider: left(provider) for domain in distinct for provider in domain}
    if items and sum(amounts) > _most_filled(amounts, sizes.values()):
        return False
    by_amount = sorted(items, key=lambda item: item[0])
    # Many small items hide that the large ones alone are too many.
    return all(
        _may_be_counted_in(by_amount[bisect.bisect_left(amounts, least) :], sizes)
        for least in sorted(set(amounts))
    )


def _may_be_counted_in(
    items: Sequence[tuple[int, Sequence[Provider]]], sizes: Mapping[Provider, int]
) -> bool:
    """Tell whether items, the smallest first, can be matched to bins by number."""
    sums = list(itertools.accumulate(amount for amount, _ in items))
    # No bin takes more items than it could take of the smallest ones.
    counts = {
        provider: bisect.bisect_right(sums, size) for provider, size in sizes.items()
    }
    return _is_matchable([domain for _, domain in items], counts)


def _most_filled(amounts: Sequence[int], sizes: Collection[int]) -> int:
    """Return how much of the bins items can fill at most, each with all of its amount.

    What is left of a bin when no sum of amounts fills it is lost.
    """
    unit = math.gcd(*amounts)
    largest = max(sizes) // unit
    if largest > MOST_UNITS:
        return sum(size // unit for size in sizes) * unit
    # A bit for each sum that some of the amounts have, in units.
    sums = 1
    for amount in amounts:
        sums |= sums << amount // unit
        sums &= (2 << largest) - 1
    filled = {
        size: (sums & (2 << size // unit) - 1).bit_length() - 1 for size in {*sizes}
    }
    return sum(filled[size] for size in sizes) * unit


def _is_matchable(
    domains: Sequence[Sequence[Provider]], counts: Mapping[Provider, int]
) -> bool:
    """Tell whether all items can be matched to bins at once, by augmenting paths.

    :param domains: the bins that each item may be matched to
    :param counts: how many items each bin takes
    """
    contents: dict[Provider, list[int]] = {provider: [] for provider in counts}
    bin_of: dict[int, Provider] = {}
    return all(
        _augment(item, domains, counts, contents, bin_of)
        for item in range(len(domains))
    )


def _augment(
    item: int,
    domains: Sequence[Sequence[Provider]],
    counts: Mapping[Provider, int],
    contents: dict[Provider, list[int]],
    bin_of: dict[int, Provider],
) -> bool:
    """Match one more item, along the shortest path of moves to a bin with room."""
    reached_by: dict[Provider, int] = {}
    reached = deque([item])
    while reached:
        mover = reached.popleft()
        for provider in domains[mover]:
            if provider in reached_by:
                continue
            reached_by[provider] = mover
            if len(contents[provider]) < counts[provider]:
                _move(provider, reached_by, contents, bin_of)
                return True
            reached.extend(contents[provider])
    return False


def _move(
    free: Provider,
    reached_by: Mapping[Provider, int],
    contents: dict[Provider, list[int]],
    bin_of: dict[int, Provider],
) -> None:
    """Move items along a path, from its end: each to the bin that the next has left."""
    while True:
        mover = reached_by[free]
        former = bin_of.get(mover)
        bin_of[mover] = free
        contents[free].append(mover)
        if former is None:
            return
        contents[former].remove(mover)
        free = former

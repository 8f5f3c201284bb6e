"""Relaxations: proofs that nothing fits, from a part of the constraints.

Each contended class is looked at by itself, as a packing problem: the slots that demand
it are items, the providers are bins. If a relaxation has no answer, the problem has
none; if it has one, the problem may still have none.
"""

import bisect
import dataclasses
import itertools
import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from placement.model.tree import Provider
from placement.search import cover, packing
from placement.search.plan import Plan, Slot
from placement.search.state import Domains

# The sums of amounts are enumerated for bins of up to this many units.
MOST_UNITS = 1 << 14

# How much of a contended class, given by number, a provider has left.
Left: TypeAlias = Callable[[int, Provider], int]
# The providers with enough left for each slot by itself, by number of the slot.
Remaining: TypeAlias = Mapping[int, Sequence[Provider]]
# The amount of each item, with its domain; and how much is left of each bin.
Items: TypeAlias = Sequence[tuple[int, Sequence[Provider]]]
Sizes: TypeAlias = Mapping[Provider, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Rest:
    """The rest of the problem at a node: the slots to serve, with their providers.

    ``missing`` are the bits that their picks must have together; ``bits_of`` are those
    that each may contribute.
    """

    plan: Plan
    slots: Sequence[Slot]
    domains: Domains
    left: Left
    missing: int
    bits_of: Callable[[Slot, Provider], int]


def is_possible(rest: Rest, steps: int) -> tuple[bool, int]:
    """Return whether all relaxations of a node have answers, the quick ones first.

    :param steps: how many steps the slow relaxations may take
    :returns: False only if that is proven; and how many steps it took
    """
    remaining = _remaining(rest.slots, rest.domains, rest.left)
    if not all(remaining.values()):
        return False, 0
    by_class = [
        _items_of(which, rest, remaining) for which in range(len(rest.plan.contended))
    ]
    if not all(_may_be_filled(items, sizes) for items, sizes in by_class):
        return False, 0
    if not all(_may_be_matched(items, sizes) for items, sizes in by_class):
        return False, 0
    packed, spent = _pack(rest, remaining, steps)
    if packed is False or not rest.missing:
        return packed is not False, spent
    covered, more = _cover(rest, remaining, steps - spent)
    return covered is not False, spent + more


def _items_of(which: int, rest: Rest, remaining: Remaining) -> tuple[Items, Sizes]:
    """Return a class as a separate packing problem: the items, and the bins."""
    items = [
        (amount, remaining[slot.number])
        for slot in rest.slots
        for demanded, amount in slot.demands
        if demanded == which
    ]
    domains = {id(domain): domain for _, domain in items}.values()
    providers = dict.fromkeys(itertools.chain.from_iterable(domains))
    return items, {provider: rest.left(which, provider) for provider in providers}


def _cover(rest: Rest, remaining: Remaining, steps: int) -> tuple[bool | None, int]:
    """Return whether the slots may have the missing bits together."""
    bits: dict[tuple[bool, int], frozenset[int]] = {}
    for slot in rest.slots:
        key = (not slot.suffix, id(remaining[slot.number]))
        if key not in bits:
            bits[key] = frozenset(
                rest.bits_of(slot, provider) & rest.missing
                for provider in remaining[slot.number]
            )
    choices = [bits[not slot.suffix, id(remaining[slot.number])] for slot in rest.slots]
    return cover.is_possible(rest.missing, choices, steps)


def _pack(rest: Rest, remaining: Remaining, steps: int) -> tuple[bool | None, int]:
    """Return whether the slots can be packed, all contended classes at once."""
    classes = range(len(rest.plan.contended))
    demanding = [slot for slot in rest.slots if slot.demands]
    domains = {id(remaining[each.number]): remaining[each.number] for each in demanding}
    providers = dict.fromkeys(itertools.chain.from_iterable(domains.values()))
    if len(demanding) > packing.MOST_ITEMS or len(providers) > packing.MOST_BINS:
        return None, 0
    bit_of = {provider: 1 << number for number, provider in enumerate(providers)}
    items = [
        (
            tuple(dict(slot.demands).get(which, 0) for which in classes),
            sum(bit_of[provider] for provider in remaining[slot.number]),
        )
        for slot in demanding
    ]
    bins = [
        tuple(max(0, rest.left(which, provider)) for which in classes)
        for provider in providers
    ]
    return packing.is_possible(items, bins, steps)


def are_enough(plan: Plan, domains: Domains) -> bool:
    """Return whether there may be enough for all slots, by the quickest relaxation.

    It counts how many times each provider could take the smallest demand.
    """
    for which, (numbers, least) in enumerate(plan.takers):
        if len(domains[numbers[0]]) >= len(numbers):
            # Each of these has room for what the slot takes, so for the least as well.
            continue
        # Slots with the same want have the same domain.
        domain_by_id = {id(domains[number]): domains[number] for number in numbers}
        missing = len(numbers)
        for provider in set().union(*domain_by_id.values()):
            missing -= plan.room(which, provider) // least
            if missing <= 0:
                break
        else:
            return False
    return True


def _remaining(slots: Sequence[Slot], domains: Domains, left: Left) -> Remaining:
    """Return what is left of the domain of each slot by itself, by its number."""
    remaining: dict[int, Sequence[Provider]] = {}
    fitting: dict[tuple[int, tuple[tuple[int, int], ...]], Sequence[Provider]] = {}
    for slot in slots:
        domain = domains[slot.number]
        key = (id(domain), slot.demands)
        if key not in fitting:
            fitting[key] = [
                provider
                for provider in domain
                if all(
                    amount <= left(which, provider) for which, amount in slot.demands
                )
            ]
        remaining[slot.number] = fitting[key]
    return remaining


def _may_be_filled(items: Items, sizes: Sizes) -> bool:
    """Return whether the bins hold the sum of all items."""
    amounts = [amount for amount, _ in items]
    return not items or sum(amounts) <= _most_filled(amounts, sizes.values())


def _may_be_matched(items: Items, sizes: Sizes) -> bool:
    """Return whether items can be matched to bins by number, and large items alone.

    Otherwise many small items would hide that there are too many large ones.
    """
    by_amount = sorted(items, key=lambda item: item[0])
    amounts = [amount for amount, _ in by_amount]
    return all(
        _may_be_counted_in(by_amount[bisect.bisect_left(amounts, least) :], sizes)
        for least in sorted(set(amounts))
    )


def _may_be_counted_in(items: Items, sizes: Sizes) -> bool:
    """Return whether items, the smallest first, can be matched to bins by number."""
    sums = list(itertools.accumulate(amount for amount, _ in items))
    # No bin takes more items than it could take of the smallest ones.
    counts = {
        provider: bisect.bisect_right(sums, size) for provider, size in sizes.items()
    }
    return _is_matchable([domain for _, domain in items], counts)


def _most_filled(amounts: Sequence[int], sizes: Collection[int]) -> int:
    """Return how much of the bins whole items can fill at most.

    If no sum of amounts fills a bin, the rest of it is lost.
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
    """Return whether all items can be matched to bins at once, by augmenting paths.

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

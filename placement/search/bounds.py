"""Relaxations: proofs that nothing fits, from a part of the constraints.

If a relaxation has no answer, the problem has none; if it has one, the problem may
still have none.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from placement.model.tree import Provider
from placement.search import packing
from placement.search.plan import Plan, Slot
from placement.search.state import Domains, Left

# The providers with enough left for each slot by itself, by number of the slot.
Remaining: TypeAlias = Mapping[int, Sequence[Provider]]


def is_possible(
    slots: Sequence[Slot], domains: Domains, left: Left, steps: int
) -> tuple[bool, int]:
    """Return whether the rest of the slots at a node pass all relaxations.

    :param steps: how many steps the slow one may take
    :returns: False only if that is proven; and how many steps it took
    """
    remaining = _remaining(slots, domains, left)
    if not all(remaining.values()):
        return False, 0
    demanding = [slot for slot in slots if slot.demands]
    some = {id(remaining[each.number]): remaining[each.number] for each in demanding}
    providers = dict.fromkeys(itertools.chain.from_iterable(some.values()))
    bit_of = {provider: 1 << number for number, provider in enumerate(providers)}
    items = [
        (
            tuple(dict(slot.demands).get(which, 0) for which in range(len(left))),
            sum(bit_of[provider] for provider in remaining[slot.number]),
        )
        for slot in demanding
    ]
    bins = [
        tuple(max(0, of_class[provider]) for of_class in left) for provider in providers
    ]
    packed, spent = packing.is_possible(items, bins, steps)
    return packed is not False, spent


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
                    amount <= left[which][provider] for which, amount in slot.demands
                )
            ]
        remaining[slot.number] = fitting[key]
    return remaining

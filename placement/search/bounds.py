"""Proofs that nothing fits, by looking at less than all that matters.

Each contended class is looked at by itself: slots and providers are guests and rooms.
What is impossible then is impossible; what is possible may turn out not to be.
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

# Sums of amounts up to that many units are told apart.
MOST_UNITS = 1 << 14

# How much a provider has left of a contended class, by its number.
Left: TypeAlias = Callable[[int, Provider], int]


def is_possible(
    plan: Plan, slots: Sequence[Slot], domains: Domains, left: Left
) -> bool:
    """Tell whether providers may have enough left for all of some slots."""
    wishes = _wishes(slots, domains, left)
    for which in range(len(plan.contended)):
        guests = [
            (amount, wishes[slot.number])
            for slot in slots
            for demanded, amount in slot.demands
            if demanded == which
        ]
        if not _have_places(guests, functools.partial(left, which)):
            return False
    return True


def are_enough(plan: Plan, domains: Domains) -> bool:
    """Tell whether there may be enough, as quickly as that can be told.

    Each provider is asked how many of the smallest demand it could take.
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


def _wishes(
    slots: Sequence[Slot], domains: Domains, left: Left
) -> dict[int, Sequence[Provider]]:
    """Return who has enough left for each slot by itself, by its number."""
    wishes: dict[int, Sequence[Provider]] = {}
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
        wishes[slot.number] = known[key]
    return wishes


def _have_places(
    guests: Sequence[tuple[int, Sequence[Provider]]],
    left: Callable[[Provider], int],
) -> bool:
    """Tell whether guests find rooms, each one with those it would like.

    :param guests: the amount that each needs, and the providers it may go to
    """
    if not all(wishes for _, wishes in guests):
        return False
    amounts = sorted(amount for amount, _ in guests)
    distinct = {id(wishes): wishes for _, wishes in guests}.values()
    rooms = {provider: left(provider) for wishes in distinct for provider in wishes}
    if guests and sum(amounts) > _most_taken(amounts, rooms.values()):
        return False
    by_amount = sorted(guests, key=lambda guest: guest[0])
    # Many small guests hide that the large ones alone are too many.
    return all(
        _have_seats(by_amount[bisect.bisect_left(amounts, least) :], rooms)
        for least in sorted(set(amounts))
    )


def _have_seats(
    guests: Sequence[tuple[int, Sequence[Provider]]], rooms: Mapping[Provider, int]
) -> bool:
    """Tell whether guests, the smallest first, find rooms by their number."""
    sums = list(itertools.accumulate(amount for amount, _ in guests))
    # No provider takes more guests than it could take of the smallest.
    places = {
        provider: bisect.bisect_right(sums, room) for provider, room in rooms.items()
    }
    return _is_matchable([wishes for _, wishes in guests], places)


def _most_taken(amounts: Sequence[int], rooms: Collection[int]) -> int:
    """Return how much guests can take of rooms at most: each takes all of its amount.

    What is left of a room when no sum of amounts fills it is taken by nobody.
    """
    unit = math.gcd(*amounts)
    largest = max(rooms) // unit
    if largest > MOST_UNITS:
        return sum(room // unit for room in rooms) * unit
    # The bits of the sums there are, in units.
    sums = 1
    for amount in amounts:
        sums |= sums << amount // unit
        sums &= (2 << largest) - 1
    fillings = {
        room: (sums & (2 << room // unit) - 1).bit_length() - 1 for room in {*rooms}
    }
    return sum(fillings[room] for room in rooms) * unit


def _is_matchable(
    wishes: Sequence[Sequence[Provider]], places: Mapping[Provider, int]
) -> bool:
    """Tell whether all guests find a place, others moving along where one is full."""
    holders: dict[Provider, list[int]] = {provider: [] for provider in places}
    host: dict[int, Provider] = {}
    return all(
        _seat(guest, wishes, places, holders, host) for guest in range(len(wishes))
    )


def _seat(
    guest: int,
    wishes: Sequence[Sequence[Provider]],
    places: Mapping[Provider, int],
    holders: dict[Provider, list[int]],
    host: dict[int, Provider],
) -> bool:
    """Find a place for one more guest: the shortest row of moves to a free one."""
    seeker_of: dict[Provider, int] = {}
    seekers = deque([guest])
    while seekers:
        seeker = seekers.popleft()
        for provider in wishes[seeker]:
            if provider in seeker_of:
                continue
            seeker_of[provider] = seeker
            if len(holders[provider]) < places[provider]:
                _move(provider, seeker_of, holders, host)
                return True
            seekers.extend(holders[provider])
    return False


def _move(
    free: Provider,
    seeker_of: Mapping[Provider, int],
    holders: dict[Provider, list[int]],
    host: dict[int, Provider],
) -> None:
    """Let the seeker of a free place move there, and so on with the place it leaves."""
    while True:
        seeker = seeker_of[free]
        former = host.get(seeker)
        host[seeker] = free
        holders[free].append(seeker)
        if former is None:
            return
        holders[former].remove(seeker)
        free = former

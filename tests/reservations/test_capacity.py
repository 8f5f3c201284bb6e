"""The accounting of slots, compared with a program that checks every moment."""

import datetime
from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from placement_reservations import capacity
from placement_reservations.capacity import Holding, Interval, NotEnough, Size

START = datetime.datetime(2030, 1, 1)
MOMENTS = range(-3, 15)

SIZES = st.builds(Size, st.integers(1, 3), st.integers(0, 3), st.integers(0, 3))
HOSTS = st.builds(Size, st.integers(0, 8), st.integers(0, 8), st.integers(0, 8))
AFFINITIES = st.sampled_from([None, True, False])


def at(moment: int) -> datetime.datetime:
    return START + datetime.timedelta(minutes=moment)


INTERVALS = st.tuples(st.integers(0, 8), st.integers(1, 5)).map(
    lambda pair: Interval(at(pair[0]), at(pair[0] + pair[1]))
)
HOLDINGS = st.builds(
    Holding,
    st.just(1),
    st.sampled_from(["one", "two", "three"]),
    INTERVALS,
    SIZES,
    st.integers(1, 3),
)


def is_used(interval: Interval, moment: int) -> bool:
    """Return whether a host is used in the minute that begins at a moment."""
    return interval.start <= at(moment) < interval.end


def fits(host: Size, holdings: Sequence[Holding]) -> bool:
    """Check every minute, adding up the amounts of every single slot."""
    for moment in MOMENTS:
        used = [0, 0, 0]
        for holding in holdings:
            for _ in range(holding.count):
                if is_used(holding.interval, moment):
                    amounts = holding.size.amounts()
                    used = [a + b for a, b in zip(used, amounts, strict=True)]
        if any(a > b for a, b in zip(used, host.amounts(), strict=True)):
            return False
    return True


def is_beside(one: Interval, other: Interval) -> bool:
    return any(is_used(one, moment) and is_used(other, moment) for moment in MOMENTS)


@settings(max_examples=300)
@given(HOSTS, st.lists(HOLDINGS, max_size=5), INTERVALS, SIZES)
def test_free_slots_are_those_that_fit_at_every_moment(
    host: Size,
    holdings: list[Holding],
    interval: Interval,
    size: Size,
) -> None:
    free = capacity.count_free(host, holdings, interval, size)
    beside = [each for each in holdings if each.overlaps(interval)]
    for count in range(1, 9):
        new = Holding(1, "new", interval, size, count)
        # A moment that is full without the new slots is full in their interval, or does
        # not concern them.
        here = [clipped(each, interval) for each in beside]
        assert (count <= free) == fits(host, [*here, new])


def clipped(holding: Holding, interval: Interval) -> Holding:
    """Return the part of a holding within an interval."""
    start = max(holding.interval.start, interval.start)
    end = min(holding.interval.end, interval.end)
    return Holding(
        1, holding.reservation_id, Interval(start, end), holding.size, holding.count
    )


@given(st.lists(HOLDINGS, max_size=4), INTERVALS)
def test_an_overlap_is_one_moment_in_common(
    held: list[Holding], interval: Interval
) -> None:
    for holding in held:
        assert holding.overlaps(interval) == is_beside(holding.interval, interval)


@settings(max_examples=200)
@given(st.lists(st.integers(0, 3), max_size=4), st.integers(1, 6), AFFINITIES)
def test_a_choice_is_found_exactly_if_there_is_one(
    counts: list[int], amount: int, affinity: bool | None
) -> None:
    offers = list(enumerate(counts))
    possible = {
        None: sum(counts) >= amount,
        True: max(counts, default=0) >= amount,
        False: sum(1 for count in counts if count) >= amount,
    }[affinity]
    try:
        chosen = capacity.choose(offers, amount, affinity)
    except NotEnough:
        assert not possible
        return
    assert possible
    assert sum(chosen.values()) == amount
    assert all(0 < count <= counts[host_id] for host_id, count in chosen.items())
    if affinity is True:
        assert len(chosen) == 1
    if affinity is False:
        assert set(chosen.values()) == {1}


@given(
    st.lists(st.integers(0, 3), min_size=3, max_size=3),
    st.dictionaries(st.integers(0, 2), st.integers(1, 3)),
    st.integers(1, 9),
    AFFINITIES,
)
def test_held_slots_are_kept(
    counts: list[int], held: dict[int, int], amount: int, affinity: bool | None
) -> None:
    offers = list(enumerate(counts))
    try:
        chosen = capacity.choose(offers, amount, affinity, held)
    except NotEnough:
        return
    added = Counter(chosen)
    added.subtract(held)
    assert all(0 <= added[host_id] <= counts[host_id] for host_id in range(3))
    assert sum(chosen.values()) == max(amount, sum(held.values()))


@given(HOSTS, st.lists(HOLDINGS, max_size=5))
def test_what_a_host_keeps_fits_and_one_slot_more_does_not(
    host: Size, holdings: list[Holding]
) -> None:
    holdings = [
        Holding(1, f"{number}", each.interval, each.size, each.count)
        for number, each in enumerate(holdings)
    ]
    displaced = capacity.count_displaced(host, holdings)
    kept = []
    for each in holdings:
        count = each.count - displaced.get(each.reservation_id, 0)
        kept.append(Holding(1, each.reservation_id, each.interval, each.size, count))
        if count < each.count:
            more = [*kept[:-1], Holding(1, "", each.interval, each.size, count + 1)]
            assert not fits(host, more)
    assert fits(host, kept)

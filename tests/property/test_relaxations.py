"""The exact relaxation, packing, against brute force."""

import operator
import random

import pytest

from placement.search import packing

ENOUGH = 10**6


def random_packing(
    rng: random.Random,
) -> tuple[list[tuple[packing.Vector, int]], list[packing.Vector]]:
    """Return items and bins, many of them equal."""
    classes, count = rng.randint(1, 3), rng.randint(1, 4)
    sizes = [tuple(rng.randint(0, 6) for _ in range(classes)) for _ in range(count)]
    bins = [rng.choice(sizes[:2]) if rng.random() < 0.5 else size for size in sizes]
    amounts = [tuple(rng.randint(0, 4) for _ in range(classes)) for _ in range(3)]
    anywhere = (1 << count) - 1
    items = [
        (
            rng.choice(amounts),
            anywhere if rng.random() < 0.6 else rng.randint(1, anywhere),
        )
        for _ in range(rng.randint(1, 6))
    ]
    return items, bins


def can_be_packed(
    items: list[tuple[packing.Vector, int]], bins: list[packing.Vector]
) -> bool:
    if not items:
        return True
    (amounts, into), *others = items
    for place, size in enumerate(bins):
        left = tuple(map(operator.sub, size, amounts))
        rest = [*bins[:place], left, *bins[place + 1 :]]
        if into >> place & 1 and min(left) >= 0 and can_be_packed(others, rest):
            return True
    return False


@pytest.mark.parametrize("seed", range(4))
def test_packing_is_decided_as_brute_force_decides(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        items, bins = random_packing(rng)
        expected = can_be_packed(items, bins)
        assert packing.is_possible(items, bins, ENOUGH)[0] is expected, (items, bins)
        in_haste, steps = packing.is_possible(items, bins, rng.randint(0, 30))
        assert in_haste in (expected, None)
        assert steps <= 40

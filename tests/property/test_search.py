"""The search against brute force, on thousands of small random clouds."""

import itertools
import random

import pytest

from placement.search import engine
from tests.property import forest, oracle

# Each batch asks this many questions, several about each cloud.
BATCHES = 40
CLOUDS = 130
QUESTIONS = 4


def as_found(candidate: engine.Candidate) -> oracle.Found:
    return (
        frozenset(
            (provider.uuid, name, amount)
            for provider, amounts in candidate.amounts().items()
            for name, amount in amounts.items()
        ),
        frozenset(
            (suffix, frozenset(provider.uuid for provider in serving))
            for suffix, serving in candidate.mappings().items()
        ),
    )


@pytest.mark.parametrize("seed", range(BATCHES))
def test_the_search_finds_what_brute_force_finds(seed):
    rng = random.Random(seed)
    for _ in range(CLOUDS):
        cloud = forest.random_forest(rng)
        snapshot = forest.snapshot_of(cloud)
        for _ in range(QUESTIONS):
            request = forest.random_request(rng, cloud)
            expected = oracle.candidates(cloud, request)
            depth_first = rng.random() < 0.5
            shuffle = rng.choice([None, random.Random(seed)])
            found = [
                as_found(candidate)
                for candidate in engine.search(
                    snapshot, request, depth_first=depth_first, shuffle=shuffle
                )
            ]
            assert len(set(found)) == len(found), (cloud, request)
            assert set(found) == expected, (cloud, request)
            limit = rng.randint(1, 5)
            some = list(itertools.islice(engine.search(snapshot, request), limit))
            assert len(some) == min(limit, len(expected)), (cloud, request)
            assert {as_found(candidate) for candidate in some} <= expected

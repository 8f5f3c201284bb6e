"""The search against brute force, on thousands of small random clouds."""

import itertools
import random

import pytest

from placement.search import engine, model
from tests.property import forest, oracle

# Each batch asks this many questions, several about each cloud.
BATCHES = 40
CLOUDS = 130
CROWDS = 15
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
def test_the_search_finds_what_brute_force_finds(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(CLOUDS):
        cloud = forest.random_forest(rng)
        requests = [forest.random_request(rng, cloud) for _ in range(QUESTIONS)]
        compare(rng, cloud, requests)


@pytest.mark.parametrize("seed", range(BATCHES))
def test_the_search_finds_what_brute_force_finds_when_it_is_crowded(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(CROWDS):
        requests = [forest.crowded_request(rng) for _ in range(QUESTIONS)]
        compare(rng, forest.wide_forest(rng), requests)


def compare(
    rng: random.Random, cloud: list[forest.Node], requests: list[model.Request]
) -> None:
    """Compare the answers, all of them and some of them, in any order."""
    snapshot = forest.snapshot_of(cloud)
    for request in requests:
        expected = oracle.candidates(cloud, request)
        answers = engine.search(
            snapshot,
            request,
            depth_first=rng.random() < 0.5,
            shuffle=rng.choice([None, random.Random(rng.random())]),
        )
        found = [as_found(candidate) for candidate in answers]
        assert len(set(found)) == len(found), (cloud, request)
        assert set(found) == expected, (cloud, request)
        limit = rng.randint(1, 5)
        some = list(itertools.islice(engine.search(snapshot, request), limit))
        assert len(some) == min(limit, len(expected)), (cloud, request)
        assert {as_found(candidate) for candidate in some} <= expected

"""The search against brute force, on thousands of small random clouds."""

import itertools
import os
import random

import pytest

from placement.model.request import Request
from placement.model.tree import Provider, Snapshot, Tree
from placement.search import engine
from placement.search.search import Limits, Tally
from tests.property import forest, oracle

# Each batch asks this many questions, several about each cloud.
BATCHES = int(os.environ.get("PLACEMENT_TEST_SEARCHES", "8"))
CLOUDS = 130
CROWDS = 15
QUESTIONS = 4
# How many combinations brute force looks at; one question in a hundred has more.
MOST = 4_000


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
    compared = 0
    for _ in range(CLOUDS):
        cloud = forest.random_forest(rng)
        requests = [forest.random_request(rng, cloud) for _ in range(QUESTIONS)]
        compared += compare(rng, cloud, requests)
    assert compared > 0.95 * CLOUDS * QUESTIONS


@pytest.mark.parametrize("seed", range(BATCHES))
def test_the_search_finds_what_brute_force_finds_when_it_is_crowded(seed: int) -> None:
    rng = random.Random(seed)
    compared = 0
    for _ in range(CROWDS):
        requests = [forest.crowded_request(rng) for _ in range(QUESTIONS)]
        compared += compare(rng, forest.wide_forest(rng), requests)
    assert compared > 0.5 * CROWDS * QUESTIONS


def compare(
    rng: random.Random, cloud: list[forest.Node], requests: list[Request]
) -> int:
    """Compare the answers, all of them and some of them, in any order.

    :return: how many requests were compared
    """
    snapshot = forest.snapshot_of(cloud)
    compared = 0
    for request in requests:
        try:
            expected = oracle.candidates(cloud, request, MOST)
        except oracle.TooMany:
            continue
        compared += 1
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
        compare_within_budget(rng, snapshot, request, expected)
    return compared


def compare_within_budget(
    rng: random.Random,
    snapshot: Snapshot,
    request: Request,
    expected: set[oracle.Found],
) -> None:
    """Compare with what a budget permits: a part of the answers, and never called all.

    What one tree gives is the beginning of what it gives without the budget. Where
    providers share, a candidate may come up at another anchor.
    """
    tally = Tally()
    limits = Limits(rng.choice([1, 5, 50]), rng.choice([1, 10, 200]))
    depth_first = rng.random() < 0.5
    within = list(
        engine.search(
            snapshot, request, depth_first=depth_first, tally=tally, limits=limits
        )
    )
    found = [as_found(candidate) for candidate in within]
    assert len(set(found)) == len(found), (snapshot, request)
    assert set(found) <= expected, (snapshot, request)
    if not tally.exhausted:
        assert set(found) == expected, (snapshot, request)
    elif not snapshot.sharing:
        everything = list(engine.search(snapshot, request, depth_first=depth_first))
        for tree in snapshot.trees:
            some, all_ = from_tree(tree, within), from_tree(tree, everything)
            assert some == all_[: len(some)], (snapshot, request)


def from_tree(
    tree: Tree, candidates: list[engine.Candidate]
) -> list[tuple[Provider, ...]]:
    return [
        candidate.providers
        for candidate in candidates
        if candidate.providers[0].root_uuid == tree.root.uuid
    ]

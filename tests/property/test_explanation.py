"""Explanations against brute force: each number, on thousands of small clouds."""

import os
import random

import pytest

from placement.model.request import Request
from placement.questions.explanation import constraint, report, survey
from tests.property import forest, relaxed

# Each batch explains so many requests. ``tox -e explanations`` has more batches.
BATCHES = int(os.environ.get("PLACEMENT_TEST_EXPLANATIONS", "4"))
CASES = 50
MOST_CONSTRAINTS = 16


def as_plain(each: constraint.Constraint) -> relaxed.Constraint:
    return each.kind, each.suffix, each.value, each.resource_class


def random_case(rng: random.Random) -> tuple[list[forest.Node], Request]:
    """Return a cloud and a request that brute force can deal with."""
    while True:
        if rng.random() < 0.2:
            cloud, request = forest.wide_forest(rng), forest.crowded_request(rng)
        else:
            cloud = forest.random_forest(rng, size=5)
            request = forest.random_request(rng, cloud)
        # No query can ask for nothing at all.
        if (
            any(group.resources for group in request.groups)
            and len(relaxed.constraints_of(request)) <= MOST_CONSTRAINTS
            and len(request.groups) <= 3
        ):
            return cloud, request


@pytest.mark.parametrize("seed", range(BATCHES))
def test_each_number_is_what_brute_force_counts(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(CASES):
        compare(rng, *random_case(rng))


def compare(rng: random.Random, cloud: list[forest.Node], request: Request) -> None:
    brute = relaxed.BruteForce(cloud, request)
    asked = survey.Survey(forest.snapshot_of(cloud), request)
    roots = [root.name for root in brute.roots]
    most_changes, most_near = rng.choice([1, 10, 1000]), rng.choice([0, 1, 5])
    wanted = report.Wanted(changes=most_changes, near=most_near, hosts=tuple(roots))
    told = report.report(asked, wanted, survey.Deadline(600))
    context = (cloud, request)

    assert told.complete
    assert told.hosts == len(roots), context
    assert told.serves == len(brute.serving(brute.all)), context
    assert [as_plain(each.constraint) for each in told.figures] == brute.constraints
    assert [(each.before, each.after) for each in told.figures] == brute.funnel(), (
        context
    )
    if told.figures:
        assert told.figures[-1].after == told.serves, context
    for figures, plain in zip(told.figures, brute.constraints, strict=True):
        assert figures.alone == brute.alone(plain), (plain, *context)
        assert figures.gain == brute.gain(plain), (plain, *context)
        smaller = figures.smaller and (figures.smaller.amount, figures.smaller.serves)
        expected = brute.largest(plain) if plain[0] in ("unit", "room") else None
        assert smaller == expected, (plain, *context)
    assert told.changes is not None
    assert [
        (tuple(map(as_plain, each.dropped)), each.serves) for each in told.changes
    ] == brute.changes(most_changes), context
    assert told.near is not None
    assert [
        (each.tree.root.uuid, tuple(map(as_plain, each.unmet))) for each in told.near
    ] == brute.near(most_near), context
    assert [
        (each.tree.root.uuid, tuple(map(as_plain, each.unmet))) for each in told.asked
    ] == [(root.name, brute.unmet(root)) for root in brute.roots], context

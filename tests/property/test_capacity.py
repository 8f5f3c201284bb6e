"""How many times a request could be claimed, compared with every order of claims."""

import dataclasses
import itertools
import random

import pytest

from placement.model.request import Group, Request
from placement.model.tree import SHARING
from placement.questions import capacity
from placement.search.search import Limits
from tests.property import forest, oracle

BATCHES = 4
CASES = 150
# Clouds that can be claimed in more ways are left to others.
MOST_STATES = 100
MOST = 100_000


class TooMany(Exception):
    """Brute force would take too long."""


def most_claims(
    cloud: list[forest.Node], request: Request, known: dict[object, int]
) -> int:
    """Return the largest number of claims, one after the other in any way."""
    key = tuple(
        inventory.used for node in cloud for inventory in node.inventories.values()
    )
    if key not in known:
        if len(known) > MOST_STATES:
            raise TooMany
        known[key] = 0
        known[key] = max(
            (
                1 + most_claims(claimed(cloud, taken), request, known)
                for taken in {taken for taken, _ in oracle.candidates(cloud, request)}
            ),
            default=0,
        )
    return known[key]


def claimed(
    cloud: list[forest.Node], taken: frozenset[tuple[str, str, int]]
) -> list[forest.Node]:
    amounts = {(node, name): amount for node, name, amount in taken}
    nodes: dict[str, forest.Node] = {}
    for node in cloud:
        inventories = {
            name: dataclasses.replace(
                each, used=each.used + amounts.get((node.name, name), 0)
            )
            for name, each in node.inventories.items()
        }
        nodes[node.name] = forest.Node(
            node.name,
            nodes[node.parent.name] if node.parent else None,
            inventories,
            node.traits,
            node.aggregates,
        )
    return list(nodes.values())


@pytest.mark.parametrize("seed", range(BATCHES))
def test_it_is_the_most_or_a_lower_bound(seed: int) -> None:
    rng = random.Random(seed)
    exact = serving = 0
    for _ in range(CASES):
        cloud = forest.random_forest(rng, size=5)
        request = forest.random_request(rng, cloud)
        if not any(group.resources for group in request.groups):
            # The API does not take it.
            continue
        try:
            most = most_claims(cloud, request, {})
        except TooMany:
            continue
        counts = capacity.count_all(
            forest.snapshot_of(cloud), request, MOST, capacity.Effort()
        )
        total = sum(each.count for each in counts)
        context = (cloud, request)
        if all(each.exact for each in counts):
            assert total == most, context
            exact += total > 0
        assert total <= most, context
        assert bool(total) == bool(most), context
        serving += total > 0
    assert exact > CASES / 50
    assert serving > exact


def test_it_stops_at_its_limit() -> None:
    few, endless = forest.Inventory(5), forest.Inventory(2**30, allocation_ratio=1000.0)
    nothing = frozenset[str]()
    cloud = [
        forest.Node("a", None, {"VCPU": endless}, nothing, nothing),
        forest.Node("b", None, {"VCPU": few}, nothing, nothing),
    ]
    counts = capacity.count_all(
        forest.snapshot_of(cloud),
        Request((Group("", {"VCPU": 1}),)),
        5,
        capacity.Effort(),
    )
    found = {each.tree.root.uuid: (each.count, each.exact) for each in counts}
    assert found == {"a": (5, False), "b": (5, True)}


@pytest.mark.parametrize("seed", range(2))
def test_what_is_counted_when_time_or_budget_ends_is_certain(seed: int) -> None:
    rng = random.Random(seed)
    cut = whole = 0
    for _ in range(150):
        cloud = forest.random_forest(rng, size=5)
        request = forest.random_request(rng, cloud)
        if not any(group.resources for group in request.groups):
            continue
        snapshot = forest.snapshot_of(cloud)
        full = {
            each.tree: each.count
            for each in capacity.count_all(snapshot, request, MOST, capacity.Effort())
        }
        clock = itertools.count(0.0, 1.0).__next__
        for effort in (
            capacity.Effort(rng.randrange(1, 8), clock=clock),
            capacity.Effort(limits=Limits(per_anchor=1, total=1)),
        ):
            counts = capacity.count_all(snapshot, request, MOST, effort)
            context = (seed, cloud, request)
            assert all(each.count <= full[each.tree] for each in counts), context
            if effort.is_cut:
                cut += 1
            else:
                assert len(counts) == len(full), context
                whole += 1
    assert cut > 10
    assert whole > 10


def test_a_pool_is_unlike_a_host_with_as_much_room() -> None:
    disk = {"DISK_GB": forest.Inventory(40)}
    nothing, pool = frozenset[str](), frozenset({SHARING})
    cloud = [
        forest.Node("diskless", None, {}, nothing, frozenset({"A"})),
        forest.Node("local", None, disk, nothing, nothing),
        forest.Node("pool", None, disk, pool, frozenset({"A"})),
    ]
    request = Request((Group("", {"DISK_GB": 20}),))
    counts = capacity.count_all(
        forest.snapshot_of(cloud), request, MOST, capacity.Effort()
    )
    assert sum(each.count for each in counts) == most_claims(cloud, request, {}) == 4

"""How many times a request could be claimed, compared with every order of claims."""

import dataclasses
import itertools
import random

import pytest

from placement.model.request import Group, Request
from placement.model.tree import SHARING
from placement.questions import counting
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
        counts = counting.count_all(
            forest.snapshot_of(cloud), request, MOST, counting.Effort()
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


def host(name: str, **totals: int) -> forest.Node:
    inventories = {each: forest.Inventory(total) for each, total in totals.items()}
    return forest.Node(name, None, inventories, frozenset(), frozenset())


def count(
    cloud: list[forest.Node], *groups: Group, most: int = MOST
) -> dict[str, tuple[int, bool]]:
    counts = counting.count_all(
        forest.snapshot_of(cloud), Request(groups), most, counting.Effort()
    )
    return {each.tree.root.uuid: (each.count, each.exact) for each in counts}


def test_hosts_are_counted_to_the_last_claim() -> None:
    cloud = [host("a", VCPU=7, MEMORY_MB=100), host("b", VCPU=1, MEMORY_MB=100)]
    asked = Group("", {"VCPU": 2, "MEMORY_MB": 20})
    assert count(cloud, asked) == {"a": (3, True), "b": (0, True)}


def test_devices_count_each_by_itself() -> None:
    root = host("root")
    cards = [
        forest.Node(
            f"card{total}",
            root,
            {"CUSTOM_VF": forest.Inventory(total)},
            frozenset(),
            frozenset(),
        )
        for total in (3, 4, 5)
    ]
    asked = Group("1", {"CUSTOM_VF": 2})
    assert count([root, *cards], asked) == {"root": (1 + 2 + 2, True)}


def test_a_shared_pool_is_counted_once() -> None:
    aggregates = frozenset({"rack"})
    hosts = [
        dataclasses.replace(host(name, VCPU=8), aggregates=aggregates)
        for name in ("a", "b")
    ]
    pool = dataclasses.replace(
        host("pool", DISK_GB=100),
        traits=frozenset({SHARING}),
        aggregates=aggregates,
    )
    asked = Group("", {"VCPU": 1, "DISK_GB": 10})
    assert count([*hosts, pool], asked) == {
        "a": (8, False),
        "b": (2, False),
        "pool": (0, True),
    }


def test_it_stops_at_its_limit() -> None:
    endless = forest.Inventory(2**30, allocation_ratio=1000.0)
    cloud = [
        forest.Node("a", None, {"VCPU": endless}, frozenset(), frozenset()),
        host("b", VCPU=5),
    ]
    asked = Group("", {"VCPU": 1})
    assert count(cloud, asked, most=5) == {"a": (5, False), "b": (5, True)}


def test_only_hosts_that_share_are_counted_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared, local = forest.Inventory(7), forest.Inventory(100)
    pool = forest.Node(
        "pool", None, {"DISK_GB": shared}, frozenset({SHARING}), frozenset({"A"})
    )
    with_pool = [
        forest.Node(f"with{n}", None, {"VCPU": local}, frozenset(), frozenset({"A"}))
        for n in range(3)
    ]
    alone = [host(f"alone{n}", VCPU=100, DISK_GB=20) for n in range(200)]
    counted = 0
    count_one = counting._Counter.count

    def counting_one(self: counting._Counter, tree: object) -> counting.Count:
        nonlocal counted
        counted += 1
        return count_one(self, tree)  # type: ignore[arg-type]

    monkeypatch.setattr(counting._Counter, "count", counting_one)
    asked = Group("", {"VCPU": 1, "DISK_GB": 2})
    found = count([pool, *with_pool, *alone], asked)
    assert sum(found[node.name][0] for node in with_pool) == 3
    assert all(found[node.name] == (10, True) for node in alone)
    # One of the hosts alone stands for all of them.
    assert counted < 10


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
            for each in counting.count_all(snapshot, request, MOST, counting.Effort())
        }
        clock = itertools.count(0.0, 1.0).__next__
        for effort in (
            counting.Effort(rng.randrange(1, 8), clock=clock),
            counting.Effort(limits=Limits(per_anchor=1, total=1)),
        ):
            counts = counting.count_all(snapshot, request, MOST, effort)
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
    counts = counting.count_all(
        forest.snapshot_of(cloud), request, MOST, counting.Effort()
    )
    assert sum(each.count for each in counts) == most_claims(cloud, request, {}) == 4

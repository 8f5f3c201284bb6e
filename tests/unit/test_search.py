"""The order, the reach and the work of the search.

Work is counted, not timed: how often a pick was made, and how often it was asked
whether enough is left.
"""

import itertools
import random

import pytest

from placement.model.inventory import InventoryUsage
from placement.model.request import Group, Request
from placement.model.tree import SHARING, Provider, Snapshot, Tree, snapshot_of
from placement.search import engine
from tests.unit.clouds import (
    FULL,
    NUMA,
    ONE,
    Stocks,
    ask,
    cluster,
    groups,
    hosts,
    numa_host,
    of_all_classes,
    on_one_node,
    roots,
    tree,
)


def test_each_tree_gives_one_candidate_in_turn() -> None:
    snapshot = hosts(3, [ONE] * 4)
    found, _ = ask(snapshot, Request(groups(2)), limit=7)
    assert roots(found) == [*["host0", "host1", "host2"] * 2, "host0"]


def test_depth_first_exhausts_one_tree_before_the_next() -> None:
    found = engine.search(hosts(2, [ONE] * 3), Request(groups(1)), depth_first=True)
    assert roots(found) == ["host0"] * 3 + ["host1"] * 3


def test_a_random_order_reaches_every_candidate_first() -> None:
    snapshot = hosts(2, [ONE] * 2)
    rng = random.Random(7)
    firsts = {
        next(engine.search(snapshot, Request(groups(1)), shuffle=rng)).providers
        for _ in range(200)
    }
    assert len(firsts) == 4


def test_no_tree_is_looked_at_before_it_is_its_turn() -> None:
    _, tally = ask(hosts(1000, [ONE] * 2), Request(groups(2)), limit=10)
    assert tally.picks == 20


@pytest.mark.parametrize("isolate", [True, False])
@pytest.mark.parametrize("size", [8, 16, 64])
def test_as_many_groups_as_devices_are_served_without_a_detour(
    size: int, isolate: bool
) -> None:
    request = Request(groups(size), isolate=isolate)
    found, tally = ask(hosts(200, [ONE] * size), request, limit=100)
    assert len(set(roots(found))) == 100
    assert tally.picks == 100 * size
    assert tally.proofs == 0


@pytest.mark.parametrize("isolate", [True, False])
@pytest.mark.parametrize(
    ("size", "devices"),
    [
        (6, [ONE] * 5 + [FULL] * 3),
        (9, [ONE] * 8),
        (64, [ONE] * 63),
    ],
)
def test_one_device_too_few_is_seen_without_a_single_pick(
    size: int, devices: list[Stocks], isolate: bool
) -> None:
    request = Request(groups(size), isolate=isolate)
    found, tally = ask(hosts(200, devices), request, limit=100)
    assert not found
    assert tally.picks == 0


def test_too_few_for_some_of_the_groups_is_seen_after_one_attempt() -> None:
    # Three groups want one of the two devices that are special.
    names = [f"d{number}" for number in range(16)]
    special = dict.fromkeys(names[:2], NUMA)
    cloud = [
        tree(
            f"host{number}",
            {f"{name}-{number}": f"host{number}" for name in names},
            {f"{name}-{number}": ONE for name in names},
            {f"{name}-{number}": traits for name, traits in special.items()},
        )
        for number in range(50)
    ]
    wanting = [Group(f"x{n}", {"GPU": 1}, required=(NUMA,)) for n in range(3)]
    request = Request((*groups(10), *wanting), isolate=True)
    found, tally = ask(snapshot_of(cloud), request, limit=100)
    assert not found
    # The other hosts are like the first.
    assert tally.picks <= 13
    assert tally.proofs <= 5


def test_a_greedy_pick_is_taken_back_without_trying_everything_after_it() -> None:
    # Groups of two and three; only one way round fills the devices.
    devices = [{"GPU": InventoryUsage(5)}] * 6
    sizes = [2, 3] * 6
    wanting = tuple(Group(str(n), {"GPU": size}) for n, size in enumerate(sizes))
    found, tally = ask(hosts(20, devices), Request(wanting), limit=20)
    assert len(found) == 20
    assert tally.picks <= 20 * 12 * 3


def test_amounts_that_fill_no_provider_are_not_tried_in_every_order() -> None:
    # Even amounts into odd inventories: there is enough, but one is left of each.
    totals = range(61, 85, 2)
    devices = [{"GPU": InventoryUsage(total)} for total in totals]
    amounts = [*range(10, 54, 2), *range(10, 26, 2), *range(10, 16, 2)]
    assert sum(totals) - len(totals) < sum(amounts) <= sum(totals)
    wanting = tuple(Group(str(n), {"GPU": of}) for n, of in enumerate(amounts))
    found, tally = ask(hosts(1, devices), Request(wanting))
    assert not found
    assert tally.picks <= 100


def test_amounts_too_many_to_tell_their_sums_apart_are_served() -> None:
    devices = [{"MB": InventoryUsage(2**31 - 1)}] * 3
    wanting = tuple(
        Group(str(n), {"MB": amount})
        for n, amount in enumerate([2**30, 2**30 - 9, 5] * 3)
    )
    found, _ = ask(hosts(1, devices), Request(wanting), limit=10)
    assert len(found) == 10
    too_much = Group("more", {"MB": 10})
    assert ask(hosts(1, devices), Request((*wanting, too_much)))[0] == []


def test_large_amounts_that_are_too_many_are_seen_among_small_ones() -> None:
    devices = [
        {"GPU": InventoryUsage(5), "MB": InventoryUsage(40 + number)}
        for number in range(16)
    ]
    large = [Group(f"l{n}", {"GPU": 4, "MB": 1}) for n in range(17)]
    small = [Group(f"s{n}", {"GPU": 1}) for n in range(10)]
    found, tally = ask(hosts(1, devices), Request((*small, *large)))
    assert not found
    assert tally.picks <= 50


def test_as_many_traits_as_picks_are_found_without_trying_everything() -> None:
    traits = [f"T{number}" for number in range(13)]
    request = of_all_classes(12, traits[:12])
    found, tally = ask(cluster(12, 30, traits), request, limit=100)
    assert len(found) == 100
    assert tally.picks <= 100 * 12


def test_a_subtree_that_is_too_small_is_left_at_once() -> None:
    cloud = snapshot_of(numa_host(f"host{number}", 8) for number in range(200))
    found, tally = ask(cloud, on_one_node(9), limit=100)
    assert not found
    assert tally.picks <= 40


def test_subtrees_that_are_alike_are_not_tried_in_turn() -> None:
    # Eight nodes with eight functions each hold no more than sixteen sets of three.
    sets = [(f"{n}a", f"{n}b", f"{n}c") for n in range(17)]
    members = tuple(
        Group(suffix, {"GPU": 1}) for suffix in itertools.chain.from_iterable(sets)
    )
    nodes = tuple(Group(f"{n}n", required=(NUMA,)) for n in range(17))
    request = Request(
        (*members, *nodes),
        same_subtree=tuple(
            frozenset({node.suffix, *of_node})
            for node, of_node in zip(nodes, sets, strict=True)
        ),
    )
    cloud = snapshot_of([numa_host("host", functions=8, nodes=8)])
    found, tally = ask(cloud, request)
    assert not found
    assert tally.picks <= 2000


def binary_tree(levels: int) -> Tree:
    parents = {
        "r" + "".join(way): "r" + "".join(way[:-1])
        for level in range(1, levels)
        for way in itertools.product("01", repeat=level)
    }
    return tree("r", parents, dict.fromkeys(["r", *parents], ONE))


def test_a_tree_of_ten_levels_is_searched_top_down() -> None:
    cloud = snapshot_of([binary_tree(10)])
    pairs = tuple(frozenset({str(n), str(n + 1)}) for n in range(1, 9))
    request = Request(groups(9), isolate=True, same_subtree=pairs)
    found, tally = ask(cloud, request, limit=10)
    assert len(found) == 10
    assert tally.picks <= 500


def test_a_chain_deeper_than_python_recurses_is_searched() -> None:
    names = [f"p{number}" for number in range(3000)]
    parents = dict(itertools.pairwise(reversed(names)))
    cloud = snapshot_of([tree("p0", parents, {names[-1]: ONE, names[-2]: ONE})])
    bound = (frozenset({"1", "2"}),)
    request = Request(groups(2), isolate=True, same_subtree=bound)
    found, _ = ask(cloud, request)
    assert len(found) == 2
    # One more than there are, so that everything is compared with everything.
    bound = (frozenset({"1", "2", "3"}),)
    request = Request(groups(3), isolate=True, same_subtree=bound)
    assert ask(cloud, request)[0] == []


def test_more_groups_than_python_recurses_are_served() -> None:
    found, _ = ask(hosts(1, [{"GPU": InventoryUsage(2000)}]), Request(groups(2000)))
    assert len(found) == 1
    assert not ask(hosts(1, [{"GPU": InventoryUsage(1999)}]), Request(groups(2000)))[0]


def test_amounts_beyond_any_inventory_fit_nowhere() -> None:
    request = Request(groups(2, amount=10**40))
    assert ask(hosts(2, [ONE]), request)[0] == []


def shared_cloud(count: int) -> Snapshot:
    """Return five providers that share with a number of trees."""

    def provider(name: str, inventories: Stocks, traits: frozenset[str]) -> Tree:
        only = Provider(
            name, None, name, inventories, (), traits, frozenset({"A"}), 0, 1
        )
        return Tree((only,))

    sharing = frozenset({SHARING})
    plenty = {"GPU": InventoryUsage(100)}
    return snapshot_of(
        [provider(f"s{n}", plenty, sharing) for n in range(5)]
        + [provider(f"c{n}", {}, frozenset()) for n in range(count)]
    )


def test_sharing_providers_are_not_combined_anew_at_each_anchor() -> None:
    found, tally = ask(shared_cloud(200), Request(groups(3)))
    assert len(found) == 5**3
    # Combined once, and after that seen to be the same again.
    assert tally.picks <= 5 + 5**2 + 5**3

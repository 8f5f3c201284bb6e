"""What the search does within a budget, and how rarely it needs one.

Work is counted, not timed: in picks and proofs.
"""

import itertools
import random
from collections.abc import Iterable

import pytest

from placement.model.inventory import InventoryUsage
from placement.model.request import Group, Request
from placement.model.tree import Snapshot, Tree, snapshot_of
from placement.search import engine
from placement.search.search import Limits
from tests.unit.clouds import (
    ONE,
    PAIRS,
    ask,
    groups,
    hosts,
    large_host,
    roots,
    small_host,
    tree,
)

# A share that is spent by any walk that does not go straight to an answer.
NO_SHARE = Limits(per_anchor=1, total=10_000)
NOTHING = Limits(per_anchor=1, total=1)


@pytest.mark.parametrize("depth_first", [True, False])
def test_a_hard_tree_comes_after_the_easy_ones(depth_first: bool) -> None:
    hard, request = packed(random.Random(1), 20, 2, 8, spare=0.15)
    device = {"easy-device": {f"C{n}": InventoryUsage(10**4) for n in range(2)}}
    easy = tree("easy", {"easy-device": "easy"}, device)
    cloud = snapshot_of([*hard.trees, easy])
    found = engine.search(cloud, request, depth_first=depth_first)
    assert roots([next(found)]) == ["host0"]
    found = engine.search(
        cloud, request, depth_first=depth_first, limits=Limits(1, 10**9)
    )
    assert roots(list(itertools.islice(found, 2))) == ["easy", "host0"]


def test_a_hard_tree_is_searched_to_the_end_with_larger_shares() -> None:
    found, tally = ask(snapshot_of([small_host("host")]), PAIRS, limits=NO_SHARE)
    assert not found
    assert tally.pauses > 1
    assert not tally.exhausted, "with a larger share, all was looked at"


def test_a_search_that_is_ended_does_not_say_that_nothing_fits() -> None:
    cloud = snapshot_of([small_host("host")])
    found, tally = ask(cloud, PAIRS, limits=NOTHING)
    assert not found
    assert tally.exhausted
    assert tally.hardest(3) == ["1b", "2b"]


def test_each_tree_is_searched_once_besides_the_budget() -> None:
    trees = [small_host("hard"), *(large_host(f"easy{n}") for n in range(5))]
    found, tally = ask(snapshot_of(trees), PAIRS, limits=NOTHING)
    assert {f"easy{n}" for n in range(5)} <= set(roots(found))
    assert tally.exhausted
    flat = hosts(3000, [ONE])
    found, tally = ask(flat, Request(groups(1)), limits=NOTHING)
    assert len(found) == 3000
    assert not tally.exhausted


def test_answers_without_limit_end_at_the_budget() -> None:
    # 6720 answers on each host.
    found, tally = ask(hosts(30, [ONE] * 8), Request(groups(5)))
    assert tally.exhausted
    assert 10_000 < len(found) < Limits().total // 5
    assert len(set(roots(found))) == 30, "every host has its share of them"


def packed(
    rng: random.Random, groups_: int, classes: int, devices: int, spare: float
) -> tuple[Snapshot, Request]:
    """Return groups of several classes, and a host that has a little more than that."""
    wants = [[rng.randint(30, 60) for _ in range(classes)] for _ in range(groups_)]
    sizes = [sum(of) * (1 + spare) / devices for of in zip(*wants, strict=True)]
    device = {f"C{n}": InventoryUsage(int(size)) for n, size in enumerate(sizes)}
    wanting = (
        Group(str(number), {f"C{n}": amount for n, amount in enumerate(want)})
        for number, want in enumerate(wants, 1)
    )
    return hosts(1, [device] * devices), Request(tuple(wanting))


@pytest.mark.parametrize("spare", [0.0, 0.02, 0.05])
@pytest.mark.parametrize(("wanting", "classes", "devices"), [(20, 2, 8), (24, 3, 10)])
def test_groups_of_several_classes_are_proven_not_to_fit(
    wanting: int, classes: int, devices: int, spare: float
) -> None:
    cloud, request = packed(random.Random(1), wanting, classes, devices, spare)
    found, tally = ask(cloud, request)
    assert not found
    assert not tally.exhausted
    assert tally.picks <= 150
    assert tally.proofs <= 100


def with_traits(root: str, providers: int, traits: int, each: int) -> Tree:
    """Return a host whose providers have eight classes and some traits each."""
    rng = random.Random(1)
    names = [f"{root}-{number}" for number in range(providers)]
    having = {
        name: frozenset(f"T{n}" for n in rng.sample(range(traits), each))
        for name in names
    }
    inventories = {
        name: {f"C{n}": InventoryUsage(9) for n in range(8)} for name in names
    }
    parents = dict.fromkeys(names, root)
    return tree(root, parents, inventories, having)


OF_ALL_TRAITS = Group(
    "",
    {f"C{n}": 1 for n in range(8)},
    required=tuple(frozenset({f"T{n}"}) for n in range(40)),
)


def test_collective_traits_are_proven_to_be_out_of_reach() -> None:
    cloud = snapshot_of([with_traits("host", 40, 40, each=3)])
    found, tally = ask(cloud, Request((OF_ALL_TRAITS,)))
    assert not found
    assert not tally.exhausted
    assert tally.picks <= 10


def test_a_group_is_taken_for_served_if_that_is_not_decided() -> None:
    few, many = (
        snapshot_of([with_traits("host", 40, 40, each=number)]) for number in (3, 6)
    )
    request = Request((OF_ALL_TRAITS,))
    assert not engine.is_served(few, request, OF_ALL_TRAITS, NOTHING)
    assert engine.is_served(many, request, OF_ALL_TRAITS, NOTHING)


def ports(count: int) -> tuple[Group, ...]:
    rng = random.Random(1)
    return tuple(
        Group(str(n), {"EGR": amount, "IGR": rng.randrange(100, 1000, 50)})
        for n, amount in enumerate(rng.randrange(100, 1000, 50) for _ in range(count))
    )


def network_hosts(
    count: int, wanting: Iterable[Group], cards: int, spare: float
) -> Snapshot:
    """Return hosts with cards that all differ, and have just about enough together."""
    rng = random.Random(1)
    needs = {name: sum(of.resources[name] for of in wanting) for name in ("EGR", "IGR")}
    trees = []
    for root in (f"host{n}" for n in range(count)):
        names = [f"{root}-{n}" for n in range(cards)]
        inventories = {
            name: {
                of: InventoryUsage(
                    int(need / cards * (1 + spare)) + rng.randint(-40, 40)
                )
                for of, need in needs.items()
            }
            for name in names
        }
        trees.append(tree(root, dict.fromkeys(names, root), inventories))
    return snapshot_of(trees)


@pytest.mark.parametrize(
    ("count", "wanting", "cards", "spare"), [(300, 8, 4, 0.05), (30, 16, 6, 0.02)]
)
def test_ports_that_differ_take_one_proof_for_each_host_that_almost_fits(
    count: int, wanting: int, cards: int, spare: float
) -> None:
    asked = ports(wanting)
    found, tally = ask(network_hosts(count, asked, cards, spare), Request(asked))
    assert not found
    assert not tally.exhausted
    assert tally.proofs <= count
    assert tally.picks <= count * wanting

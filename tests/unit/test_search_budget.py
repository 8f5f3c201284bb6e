"""What the search does within a budget, and how rarely it needs one.

Work is counted, not timed: in picks and proofs.
"""

import itertools
import random
import weakref
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from placement.model.inventory import InventoryUsage
from placement.model.request import Group, Request
from placement.model.tree import Snapshot, Tree, snapshot_of
from placement.search import engine
from placement.search.search import Budget, Limits, Nogoods, Tally
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


def test_a_hard_tree_is_searched_to_the_end_within_the_default_budget() -> None:
    found, tally = ask(snapshot_of([small_host("host")]), PAIRS)
    assert not found
    assert not tally.exhausted
    assert tally.pauses == 0


def test_a_hard_tree_passes_its_turn_on() -> None:
    cloud = snapshot_of([small_host("hard"), large_host("easy")])
    _, whole = ask(cloud, PAIRS, limit=1)
    found, tally = ask(cloud, PAIRS, limit=1, limits=NO_SHARE)
    assert roots(found) == ["easy"]
    assert tally.picks < whole.picks


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


def test_the_same_budget_gives_the_same_answer() -> None:
    cloud = hosts(4, [{"GPU": InventoryUsage(5)}] * 6)
    wanting = tuple(Group(str(n), {"GPU": 2 + n % 2}) for n in range(12))
    first, second = (
        ask(cloud, Request(wanting), limits=Limits(10, 300))[0] for _ in range(2)
    )
    assert [each.providers for each in first] == [each.providers for each in second]
    whole = ask(cloud, Request(wanting), limit=len(first))[0]
    assert len(whole) == len(first)


def test_answers_without_limit_end_at_the_budget() -> None:
    # 6720 answers on each host.
    found, tally = ask(hosts(30, [ONE] * 8), Request(groups(5)))
    assert tally.exhausted
    assert 10_000 < len(found) < Limits().total // 5
    assert len(set(roots(found))) == 30, "every host has its share of them"


def test_nogoods_take_no_more_memory_than_they_are_given() -> None:
    nogoods = Nogoods(memory=10)
    known = nogoods.add("anchor", "first", 6)
    assert nogoods.add("anchor", "second", 6) is known
    assert nogoods.add("anchor", "third", 4) is known
    assert set(nogoods.at("anchor")) == {"first", "third"}
    assert not nogoods.at("other")


def test_whether_a_tree_serves_may_be_left_undecided() -> None:
    cloud = snapshot_of([small_host("hard"), large_host("easy")])
    answers = engine.serving(cloud, PAIRS, limits=NOTHING)
    assert [serves for _, serves in answers] == [None, True]
    answers = engine.serving(cloud, PAIRS)
    assert [serves for _, serves in answers] == [False, True]


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


class Endless(Iterator[None]):
    """The results of an anchor that spends its share again and again."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def __next__(self) -> None:
        self._budget.turn -= 1_000


@pytest.mark.parametrize("depth_first", [True, False])
def test_what_never_goes_on_is_not_kept(depth_first: bool) -> None:
    budget, alive = Budget(Limits(per_anchor=10, total=100)), weakref.WeakSet[Endless]()
    search: Any = SimpleNamespace(budget=budget, tally=Tally(), free_picks=1)
    kept = []

    def anchors() -> Iterator[engine.Anchor]:
        for _ in range(1_000):
            results = Endless(budget)
            alive.add(results)
            kept.append(len(alive))
            yield engine.Anchor(results, search)

    assert not list(engine.take_turns(anchors(), search, depth_first=depth_first))
    assert search.tally.exhausted
    assert search.tally.pauses == 1_000
    assert max(kept) < 20

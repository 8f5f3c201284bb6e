"""How much an explanation asks the search, however many hosts there are."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from placement.questions.explanation import finding, report, survey
from placement.schemas import allocation_candidate
from placement.search import engine
from placement_foundation.http import query_string
from placement_foundation.http.version import Version
from tests.property import forest
from tests.property.forest import Inventory, Node

# Of twelve constraints.
QUERY = (
    "resources=VCPU:16,MEMORY_MB:4096,DISK_GB:100"
    "&required=CUSTOM_A,CUSTOM_B&required=!CUSTOM_C"
)


def hosts(count: int) -> Iterator[Node]:
    """Yield hosts, all of them in use in another way."""
    rng = random.Random(1)
    for number in range(count):
        names = [name for name in "ABC" if rng.random() < 0.5]
        yield Node(
            f"host{number}",
            None,
            {
                "VCPU": Inventory(64, used=rng.randint(0, 64)),
                "MEMORY_MB": Inventory(65536, used=rng.randint(0, 65536)),
                "DISK_GB": Inventory(2000, used=rng.randint(0, 2000)),
            },
            frozenset(f"CUSTOM_{name}" for name in names),
            frozenset(),
        )


def test_hosts_that_are_alike_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = allocation_candidate.QUERY.at(Version(1, 39))
    assert parse
    request = parse(query_string.decode(QUERY)).request
    asked = survey.Survey(forest.snapshot_of(list(hosts(2000))), request)
    # Three traits, and three amounts that are free or not.
    assert 1 < len(asked.kinds) <= 2**6
    trees = 0
    serving = engine.serving

    def counting(snapshot: Any, request: Any, some: Any) -> Any:
        nonlocal trees
        trees += len(some)
        return serving(snapshot, request, some)

    monkeypatch.setattr(engine, "serving", counting)
    wanted = report.Wanted(near=100)
    told = report.report(asked, wanted, survey.Deadline(600))
    assert told.complete
    assert 0 < told.serves < told.hosts == 2000
    assert len(told.near or ()) == 100
    # One question for each kind and each reported number would be more.
    assert trees < 2**6 * 3 * len(told.figures)


def test_gain_counts_hosts_that_are_lost_as_well() -> None:
    """A group without resources needs one provider that meets all the rest."""
    both = ("CUSTOM_A", "CUSTOM_B")
    split = Node("split", None, {}, frozenset(), frozenset())
    nodes = [
        # It serves with two providers, each with one of the traits.
        split,
        Node("one", split, {"VCPU": Inventory(8)}, frozenset(both[:1]), frozenset()),
        Node("two", split, {"DISK_GB": Inventory(8)}, frozenset(both[1:]), frozenset()),
        # It has no processors, but both traits where its disk is.
        Node("whole", None, {"DISK_GB": Inventory(8)}, frozenset(both), frozenset()),
    ]
    parse = allocation_candidate.QUERY.at(Version(1, 39))
    assert parse
    query = "resources=VCPU:1,DISK_GB:1&required=CUSTOM_A,CUSTOM_B"
    request = parse(query_string.decode(query)).request
    asked = survey.Survey(forest.snapshot_of(nodes), request)
    told = report.report(asked, report.Wanted(near=1), survey.Deadline(600))
    gains = {each.constraint.id: each.gain for each in told.figures}
    assert told.serves == 1
    # Without VCPU, the second host serves, and the first one does not any more.
    assert gains["inventory:VCPU"] == 0
    dropped = [[one.id for one in each.dropped] for each in told.changes or ()]
    assert ["inventory:VCPU"] not in dropped


def test_a_group_that_asks_for_nothing_to_be_found_is_judged_all_the_same() -> None:
    parse = allocation_candidate.QUERY.at(Version(1, 39))
    assert parse
    query = (
        "resources_1=VCPU:1&required_2=!CUSTOM_C&same_subtree=_1,_2&group_policy=none"
    )
    inventory = {"VCPU": Inventory(64)}
    cloud = [
        Node("with", None, inventory, frozenset({"CUSTOM_C"}), frozenset()),
        Node("without", None, inventory, frozenset(), frozenset()),
    ]
    request = parse(query_string.decode(query)).request
    asked = survey.Survey(forest.snapshot_of(cloud), request)
    told = report.report(asked, report.Wanted(near=2), survey.Deadline(600))
    assert told.serves == 0
    trees = [kind.example for kind in asked.kinds]
    for tree, verdicts in zip(trees, finding.judge(asked, trees), strict=True):
        [forbidden] = [v for k, v in verdicts.items() if k.kind == "forbidden"]
        meeting = [each.uuid for each in forbidden.meeting]
        assert meeting == [each for each in ["without"] if each == tree.root.uuid]

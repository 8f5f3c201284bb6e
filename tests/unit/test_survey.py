"""How much an explanation asks the search, however many hosts there are."""

import random
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from placement.model.request import Request
from placement.questions.explanation import finding, report, smaller, survey
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
    for tree in trees:
        verdicts = finding.judge(asked, tree)
        [forbidden] = [v for k, v in verdicts.items() if k.kind == "forbidden"]
        meeting = [each.uuid for each in forbidden.meeting]
        assert meeting == [each for each in ["without"] if each == tree.root.uuid]


def parsed(query: str) -> Request:
    parse = allocation_candidate.QUERY.at(Version(1, 39))
    assert parse
    return parse(query_string.decode(query)).request


def test_thousands_of_constraints_do_not_take_all_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    racks = [str(uuid.UUID(int=number)) for number in range(400)]
    inventory = {"VCPU": Inventory(64)}
    cloud = [
        Node(f"host{at}", None, inventory, frozenset(), frozenset({racks[at]}))
        for at in range(100)
    ]
    refused = "".join(f"&member_of=!{rack}" for rack in racks)
    asked = survey.Survey(
        forest.snapshot_of(cloud), parsed(f"resources=VCPU:1{refused}")
    )
    assert len(asked.kinds) == 100
    trees = 0
    serving = engine.serving

    def counting(snapshot: Any, request: Any, some: Any) -> Any:
        nonlocal trees
        trees += len(some)
        return serving(snapshot, request, some)

    monkeypatch.setattr(engine, "serving", counting)
    # The time was up before it began.
    deadline = survey.Deadline(-1, clock=lambda: 0.0)
    told = report.report(asked, report.Wanted(), deadline)
    assert not told.complete
    left = [100 - at for at in range(100)]
    assert [each.before for each in told.figures[1:101]] == left
    assert told.figures[-1].after == told.serves == 0
    # Some that lack least are found all the same.
    assert [[each.value for each in host.unmet] for host in told.near or ()] == [
        [racks[at]] for at in range(5)
    ]
    # Not all hosts for each constraint, and not once more for what each host misses.
    assert trees < 100 * 400 / 4


def test_amounts_of_many_groups_are_not_combined_in_all_ways() -> None:
    many = range(1, 21)
    query = "&".join(f"resources{number}=VCPU:100" for number in many)
    asked = survey.Survey(
        forest.snapshot_of(list(hosts(3))), parsed(f"{query}&group_policy=none")
    )
    reporter = report._Reporter(asked, report.Wanted(), survey.Deadline(600))
    # Each group may do without its class or its amount, which is two ways.
    assert smaller._sums([2**number for number in range(13)]) is None
    assert smaller._sums([5] * 40) == {5 * number for number in range(41)}
    told = reporter.report()
    assert told.complete
    assert all(len(host.unmet) == 20 for host in told.near or ())


def test_amounts_that_others_may_take_in_too_many_ways_are_not_offered() -> None:
    query = "&".join(f"resources{n}=VCPU:{2**n}" for n in range(14))
    host = Node("host", None, {"VCPU": Inventory(2**13)}, frozenset(), frozenset())
    request = parsed(f"{query}&group_policy=none")
    asked = survey.Survey(forest.snapshot_of([host]), request)
    told = report.report(asked, report.Wanted(), survey.Deadline(600))
    assert not told.complete
    assert all(each.smaller is None for each in told.figures)

"""How much an explanation asks the search, however many hosts there are."""

import random
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from placement.model.request import Request
from placement.questions.explanation import report, survey
from placement.schemas import query as wire
from placement.search import engine
from placement_foundation.http import query_string
from placement_foundation.http.version import Version
from tests.property import forest
from tests.property.forest import Inventory, Node


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


def parsed(query: str) -> Request:
    parse = wire.CANDIDATES.at(Version(1, 39))
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
    snapshot = forest.snapshot_of(cloud)
    request = parsed(f"resources=VCPU:1{refused}")
    assert len(survey.Survey(snapshot, request).kinds) == 100
    trees = 0
    serving = engine.serving

    def counting(snapshot: Any, request: Any, some: Any) -> Any:
        nonlocal trees
        trees += len(some)
        return serving(snapshot, request, some)

    monkeypatch.setattr(engine, "serving", counting)
    # The time was up before it began.
    deadline = survey.Deadline(-1, clock=lambda: 0.0)
    told = report.report(snapshot, report.ExplanationQuery(request), deadline)
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


def test_amounts_that_others_may_take_in_too_many_ways_are_not_offered() -> None:
    query = "&".join(f"resources{n}=VCPU:{2**n}" for n in range(14))
    host = Node("host", None, {"VCPU": Inventory(2**13)}, frozenset(), frozenset())
    question = report.ExplanationQuery(parsed(f"{query}&group_policy=none"))
    told = report.report(forest.snapshot_of([host]), question, survey.Deadline(600))
    assert not told.complete
    assert all(each.smaller is None for each in told.figures)

"""The benchmarks, on clouds so small that they take no time."""

import json

import pytest

from benchmarks import client, cloud, crowd, question
from placement_foundation.database.storage import Database

TINY = 0.02
LARGEST = 200


@pytest.mark.parametrize("kind", cloud.KINDS)
def test_each_question_is_answered(kind: str, database: Database) -> None:
    asked = [
        each
        for each in question.questions(TINY)
        if each.kind == kind and each.hosts <= LARGEST
    ]
    planted = cloud.plant(
        database, cloud.KINDS[kind](max(each.hosts for each in asked))
    )
    assert planted >= max(each.hosts for each in asked)
    ask = client.in_process(database)
    for each in asked:
        for (path, body), _ in zip(each.requests("process"), range(2), strict=False):
            status, raw = ask(each.method, path, body)
            assert status in (200, 204), (each, raw)
            if path.startswith(question.CANDIDATES):
                found = json.loads(raw)["allocation_requests"]
                empty = "nothing fits" in each.name or each.name.startswith("9 of 8")
                assert bool(found) is not empty, each


@pytest.mark.parametrize("path", crowd.HEAVY)
def test_what_takes_long_is_answered(path: str, database: Database) -> None:
    cloud.plant(database, cloud.flat(3))
    status, raw = client.in_process(database)("GET", path, None)
    assert status == 200, raw

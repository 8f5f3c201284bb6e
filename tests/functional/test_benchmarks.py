"""The benchmarks, on clouds so small that they take no time."""

import json

import pytest
import sqlalchemy as sa

from benchmarks import client, cloud, crowd, fixed, journal, question
from placement.objects.journal import filing
from placement_foundation.database.storage import Database
from tests import backends

TINY = 0.02
LARGEST = 200


@pytest.mark.parametrize("kind", cloud.KINDS)
def test_a_cloud_is_the_same_each_time(kind: str) -> None:
    assert list(cloud.KINDS[kind](50)) == list(cloud.KINDS[kind](50))


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


def test_a_host_has_many_traits_and_is_partly_in_use(database: Database) -> None:
    cloud.plant(database, cloud.flat(3))
    ask = client.in_process(database)
    path = f"{question.CANDIDATES}?{question.SMALL}"
    _, raw = ask("GET", path, None)
    summaries = json.loads(raw)["provider_summaries"]
    assert len(summaries) == 3
    for summary in summaries.values():
        assert len(summary["traits"]) == cloud.TRAITS_OF_A_HOST + 1
        vcpu = summary["resources"]["VCPU"]
        assert 0.3 < vcpu["used"] / vcpu["capacity"] <= 0.4


@pytest.mark.parametrize("path", crowd.HEAVY)
def test_what_takes_long_is_answered(path: str, database: Database) -> None:
    cloud.plant(database, cloud.flat(3))
    status, raw = client.in_process(database)("GET", path, None)
    assert status == 200, raw


def test_the_cost_of_the_journal_is_measured_with_and_without_it(
    database: Database,
) -> None:
    cloud.plant(database, cloud.flat(20))
    url = database.engine.url.render_as_string(hide_password=False)
    other = backends.connect(url)
    found = journal.measure(database, other, times=2)
    other.engine.dispose()
    assert [len(times) for times in found.values()] == [2, 2, 30, 30]
    entries = filing.TABLES[1]
    with database.engine.connect() as connection:
        count = connection.scalar(sa.select(sa.func.count()).select_from(entries))
    # Of all claims, those with the journal, the first ones included.
    assert count == 12


def test_each_step_of_a_request_that_does_nothing_is_timed_once(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = fixed.measure(database, times=3)
    assert steps.keys() == fixed.STEPS.keys()
    assert all(microseconds > 0 for microseconds in steps.values())
    fixed.report(steps)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [*fixed.STEPS, "in all"]
    # Nothing is timed afterwards.
    assert fixed.measure(database, times=1).keys() == steps.keys()

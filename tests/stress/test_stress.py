"""Placers beside everybody else, with and without kill -9; and checks of the checks."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from placement.db import migration
from tests import backends
from tests.stress import crash, proof, server, service
from tests.stress.crash import Verdict
from tests.stress.follower import State
from tests.stress.room import CLASS, Amounts, Event, World

# An entry of the feed.
Entry = dict[str, Any]


def migrate(url: str) -> None:
    database = backends.connect(url)
    migration.SCHEMA.upgrade(database)
    database.engine.dispose()


def check(verdict: Verdict, answers: Sequence[tuple[str, int]]) -> None:
    """Check that there is no fault, and that some things were done."""
    assert not verdict.faults, crash.report(verdict)
    for kind, status in answers:
        assert verdict.done[kind, status], crash.report(verdict)


@pytest.mark.stress
def test_a_service_under_stress_keeps_its_word(tmp_path: Path) -> None:
    with backends.empty_database(tmp_path) as url:
        migrate(url)
        with service.running(url, 2, tmp_path) as address:
            verdict = crash.run([address], [], placers=4, seconds=8, seed=4711)
        log = (tmp_path / "service.log").read_text()
        backends.check_is_left_sound(url)
    check(verdict, [("place", 201), ("claim", 204), ("release", 204), ("contend", 204)])
    assert " ERROR " not in log, log[log.index(" ERROR ") :][:5000]


@pytest.mark.stress
def test_placers_and_the_feed_keep_their_word_through_crashes(tmp_path: Path) -> None:
    if not server.is_installed():
        pytest.skip("no database server can be started here")
    seed = random.randrange(2**32)
    print("seed", seed)
    with server.running() as database:
        migrate(database.url)

        def kill_database(chance: random.Random) -> None:
            database.kill()
            database.start()

        with service.running_as(database.url, 2, tmp_path) as (url, master):
            kill, pause = crash.kill_worker(master), crash.pause_worker(master)
            harms = [kill, pause, kill, kill_database]
            verdict = crash.run([url], harms, declares=True, seed=seed)
        backends.check_is_left_sound(database.url)
    answers = [("place", 201), ("place", 409), ("claim", 204), ("contend", 204)]
    check(verdict, [*answers, ("lease", 200), ("apply", 200)])
    assert verdict.entries > 100
    assert verdict.kills > 1, crash.report(verdict)


WORLD = World({"rack": ["host"]}, [], [], ["shared"])


def test_a_lost_claim_is_found() -> None:
    has = {"who": {"host": {CLASS: 2}}}
    claim = Event("claim", 0, 0.5, 204, consumers=["who"], has=has)
    assert not list(proof.find_faults(WORLD, [], {}))
    assert not list(proof.find_faults(WORLD, [claim], has))
    [fault] = proof.find_faults(WORLD, [claim], {})
    assert "who has None, and was left with" in fault


def test_a_lost_write_of_a_shared_consumer_is_found() -> None:
    writes = [
        Event("contend", 0, 0.5, 204, guards={"shared": generation})
        for generation in (None, 1)
    ]
    entries = [
        {"type": "allocations.changed", "subject": "shared", "generation": generation}
        for generation in (1, 2)
    ]
    assert not list(proof.find_faults_of_shared(WORLD, writes, entries))
    [lost] = proof.find_faults_of_shared(WORLD, writes, entries[:1])
    assert "a write after generation 1 of shared is lost" in lost
    [twice] = proof.find_faults_of_shared(WORLD, [*writes, writes[1]], entries)
    assert "2 writes found shared with generation 1" in twice
    [gap] = proof.find_faults_of_shared(WORLD, [], entries[1:])
    assert "shared went from 0 to 2" in gap


def test_a_host_that_is_used_beyond_its_capacity_is_found() -> None:
    def wrote(request: str, consumer: str, before: Amounts, after: Amounts) -> Entry:
        kind = {"type": "allocations.changed", "request_id": request}
        owner = {"consumer": {}, "generation": 1}
        return {**kind, **owner, "subject": consumer, "before": before, "after": after}

    def faults_of(*entries: Entry) -> list[str]:
        return list(proof.find_faults_of_feed(WORLD, [], begin.copy(), entries))

    one, two = ({"host": {CLASS: amount}} for amount in (1, 2))
    stock = {CLASS: {"total": 1, "reserved": 0, "allocation_ratio": 1}}
    begin = State({"host": {"inventories": stock}}, {"old": two}, {})
    # It shrank: its consumers may change, but they may not become more.
    swap = [wrote("swap", "old", two, {}), wrote("swap", "new", {}, two)]
    assert faults_of(*swap) == []
    [fault] = faults_of(wrote("grow", "new", {}, one))
    assert fault == f"3 of {CLASS} were used of host, which has 1"

"""Placers beside everybody else, with kill -9; and a check of the checks."""

import random
from pathlib import Path

import pytest

from placement.db import migration
from tests import backends
from tests.stress import crash, server, service


@pytest.mark.stress
def test_placers_and_the_feed_keep_their_word_through_crashes(tmp_path: Path) -> None:
    if not server.is_installed():
        pytest.skip("no database server can be started here")
    seed = random.randrange(2**32)
    print("seed", seed)
    with server.running() as database:
        connected = backends.connect(database.url)
        migration.SCHEMA.upgrade(connected)
        connected.engine.dispose()

        def kill_database(chance: random.Random) -> None:
            database.kill()
            database.start()

        with service.running_as(database.url, 2, tmp_path) as (url, master):
            kill, pause = crash.kill_worker(master), crash.pause_worker(master)
            harms = [kill, pause, kill, kill_database]
            verdict = crash.run([url], harms, declares=True, seed=seed)
        backends.check_is_left_sound(database.url)
    assert not verdict.faults, crash.report(verdict)
    for kind, status in (
        ("place", 201),
        ("place", 409),
        ("claim", 204),
        ("lease", 200),
        ("apply", 200),
    ):
        assert verdict.done[kind, status], crash.report(verdict)
    assert verdict.entries > 100
    assert verdict.kills > 3, crash.report(verdict)

"""A few seconds of stress on each database, and a check of the checks."""

from pathlib import Path
from typing import Any

import pytest

from placement.db import migration
from tests import backends
from tests.stress import history, run, service
from tests.stress.history import Event, Write
from tests.stress.world import World

HOST, OTHER, WHO = "host", "other", "who"
WORLD = World([HOST], [OTHER], [], [WHO], [])


@pytest.mark.stress
def test_a_service_under_stress_keeps_its_word(tmp_path: Path) -> None:
    with backends.empty_database(tmp_path) as url:
        database = backends.connect(url)
        migration.SCHEMA.upgrade(database)
        database.engine.dispose()
        with service.running(url, 2, tmp_path) as address:
            verdict = run.stress([address], processes=4, seconds=8, seed=4711)
        log = (tmp_path / "service.log").read_text()
        backends.check_is_left_sound(url)
    assert not verdict.faults, "\n".join(verdict.faults[:20])
    assert " ERROR " not in log, log[log.index(" ERROR ") :][:5000]
    for kind in ("claim", "release", "inventory", "reshape", "move"):
        assert verdict.done[kind, 204] + verdict.done[kind, 200] > 0, verdict.done


class Empty:
    """A service that can only be read, in which no provider is used."""

    def get(self, path: str) -> Any:
        document: dict[str, Any] = {"allocations": {}}
        if path.startswith("/resource_providers/"):
            document |= {"usages": {}, "resource_provider_generation": 1}
        return document


def test_a_lost_claim_is_found() -> None:
    write = Write(WHO, None, {}, {HOST: {"VCPU": 2}})
    claim = Event("claim", 0, 0.5, 204, "", [write], {HOST: 1})
    initial = dict.fromkeys(WORLD.providers, 1)
    assert not list(history.find_faults(WORLD, initial, [], Empty()))
    found = "\n".join(history.find_faults(WORLD, initial, [claim], Empty()))
    assert "who has generation None" in found
    assert "which nobody wrote last" in found
    assert "after 1 changes from 1 on" in found

"""A few seconds of stress on each database, and a check of the checks."""

import dataclasses
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
TWO: history.Amounts = {HOST: {"VCPU": 2}}


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


class Book:
    """A service that can only be read: one host, used by given consumers."""

    def __init__(self, generation: int, documents: dict[str, Any]) -> None:
        self.documents = documents
        provider = {"allocations": {}, "resource_provider_generation": generation}
        usages = {"usages": {"VCPU": 0}, "resource_provider_generation": generation}
        for uuid in WORLD.providers:
            documents.setdefault(f"/resource_providers/{uuid}/allocations", provider)
            documents.setdefault(f"/resource_providers/{uuid}/usages", usages)
        documents.setdefault(f"/allocations/{WHO}", {"allocations": {}})

    def get(self, path: str) -> Any:
        return self.documents[path]


def used(generation: int, provider_generation: int = 2) -> Book:
    """Return a service in which given consumers have two processors each."""
    return Book(
        provider_generation,
        {
            f"/allocations/{WHO}": {
                "allocations": {HOST: {"resources": {"VCPU": 2}}},
                "consumer_generation": generation,
            },
            f"/resource_providers/{HOST}/allocations": {
                "allocations": {WHO: {"resources": {"VCPU": 2}}},
                "resource_provider_generation": provider_generation,
            },
            f"/resource_providers/{HOST}/usages": {"usages": {"VCPU": 2}},
            f"/resource_providers/{OTHER}/allocations": {
                "allocations": {},
                "resource_provider_generation": 1,
            },
        },
    )


def claim(number: int, generation: int | None, status: int = 204) -> Event:
    """Return the claim of two processors, at a point in time."""
    write = Write(WHO, generation, {}, TWO)
    return Event("claim", number, number + 0.5, status, "", [write], {HOST: 1})


def faults(service: Book, *events: Event) -> list[str]:
    initial = dict.fromkeys(WORLD.providers, 1)
    return list(history.find_faults(WORLD, initial, events, service))


def test_a_story_that_can_be_has_no_faults() -> None:
    assert faults(used(1), claim(0, None)) == []
    assert faults(used(2, 3), claim(0, None), claim(1, 1)) == []
    refused = dataclasses.replace(
        claim(2, 1, 409), reason="consumer generation conflict"
    )
    assert faults(used(2, 3), claim(0, None), claim(1, 1), refused) == []


def test_a_lost_update_is_found() -> None:
    (fault,) = faults(used(2, 4), claim(0, None), claim(1, 1), claim(1, 1))
    assert "its writes lead to" in fault


def test_a_lost_claim_is_found() -> None:
    found = "\n".join(faults(Book(1, {}), claim(0, None)))
    assert "who has generation None" in found
    assert "which nobody wrote last" in found
    assert "after 1 changes from 1 on" in found


def test_what_was_refused_and_is_there_is_found() -> None:
    assert faults(used(1), claim(0, None, 409))


def test_a_change_without_a_new_generation_is_found() -> None:
    (fault,) = faults(used(1, 1), claim(0, None))
    assert "host has generation 1 after 1 changes" in fault


@pytest.mark.parametrize("status", [500, 503, 404])
def test_an_answer_of_no_correct_service_is_found(status: int) -> None:
    (fault,) = faults(used(1), claim(0, None), claim(1, 1, status))
    assert f"claim was answered {status}" in fault


def test_a_conflict_that_is_the_service_s_own_is_found() -> None:
    reason = "Inventory and/or allocations changed while attempting to allocate"
    refused = dataclasses.replace(claim(1, 1, 409), reason=reason)
    (fault,) = faults(used(1), claim(0, None), refused)
    assert reason in fault


def test_a_generation_that_goes_back_is_found() -> None:
    new, old = (
        Event("read", started, started + 1.0, 200, seen={HOST: generation})
        for started, generation in [(1.0, 2), (3.0, 1)]
    )
    (fault,) = faults(used(1), claim(0, None), new, old)
    assert fault == "host went from generation 2 back to 1"
    overlapping = dataclasses.replace(old, started=1.5)
    assert faults(used(1), claim(0, None), new, overlapping) == []


def test_more_in_use_than_there_ever_was_is_found() -> None:
    read = Event("look", 1.0, 2.0, 200, used={HOST: {"VCPU": 21}})
    assert faults(used(1), claim(0, None), read) == ["21 of VCPU was used of host"]


def test_usages_that_are_not_a_sum_are_found() -> None:
    service = used(1)
    service.documents[f"/resource_providers/{HOST}/usages"]["usages"]["VCPU"] = 3
    (fault,) = faults(service, claim(0, None))
    assert "host has usages {'VCPU': 3}, the sum is {'VCPU': 2}" in fault


def test_events_are_the_same_after_they_were_saved(tmp_path: Path) -> None:
    events = [claim(0, None), claim(1, 1, 409)]
    history.save(tmp_path / "events", events)
    assert history.load(tmp_path / "events") == events

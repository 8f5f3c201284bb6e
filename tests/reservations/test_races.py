"""Several processes that use one database at once."""

import datetime
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
import sqlalchemy as sa

from placement_foundation import errors
from placement_reservations.capacity import Holding
from placement_reservations.lifecycle import (
    change,
    execution,
    health,
    registration,
    termination,
)
from placement_reservations.lifecycle.change import Update
from placement_reservations.store import allocation as allocations
from placement_reservations.store import claim as claims
from placement_reservations.store import flavor as flavors
from placement_reservations.store import lease as leases
from tests import backends, programs
from tests.reservations.cloud import DAY, HOUR, SMALL, TODAY, Cloud
from tests.serving import Served
from tests.threads import at_once

BUYER = "tests.reservations.buyer"


def try_order(cloud: Cloud, amount: int, affinity: bool | None = None) -> bool:
    try:
        cloud.order(amount, affinity)
    except errors.Conflict:
        return False
    return True


@pytest.mark.parametrize("affinity", [None, True])
def test_no_slot_is_promised_twice(cloud: Cloud, affinity: bool | None) -> None:
    calls = [lambda: try_order(cloud, 4, affinity) for _ in range(6)]
    assert sum(at_once(calls)) == 4
    assert cloud.count_slots() == 16
    cloud.assert_consistent()


def test_two_processes_promise_all_there_is_and_no_more(
    cloud: Cloud, service: Served, books_url: str, tmp_path: Path
) -> None:
    buyers = [
        Popen(
            [sys.executable, "-m", BUYER, books_url, service.url],
            env=programs.environment(tmp_path),
            stdout=PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    bought = [int(buyer.communicate(timeout=120)[0]) for buyer in buyers]
    assert sum(bought) == 16
    assert cloud.count_slots() == 16
    cloud.assert_consistent()


def test_each_event_is_run_once(cloud: Cloud) -> None:
    leases = [cloud.order(2) for _ in range(3)]
    child = cloud.children()["blazar_compute-1"]
    # Each successful write increments the generation, however many attempts it took.
    before = cloud.placement.generation(child)
    cloud.clock.advance(DAY)
    at_once([cloud.run_due] * 4)
    assert [cloud.status(lease) for lease in leases] == ["ACTIVE"] * 3
    assert cloud.placement.generation(child) == before + 3
    cloud.clock.advance(2 * HOUR)
    at_once([cloud.run_due] * 4)
    assert [cloud.status(lease) for lease in leases] == ["TERMINATED"] * 3
    assert cloud.placement.generation(child) == before + 6
    cloud.assert_consistent()


def test_a_lease_is_deleted_once(cloud: Cloud) -> None:
    lease = cloud.order(2)

    def delete() -> type[Exception] | None:
        try:
            termination.delete(cloud.world, lease)
        except errors.ServiceError as exc:
            return type(exc)
        return None

    outcomes = at_once([delete] * 4)
    assert outcomes.count(None) == 1
    cloud.assert_consistent()


def test_a_lease_that_starts_is_not_changed_or_deleted_meanwhile(cloud: Cloud) -> None:
    lease = cloud.order(2)
    (reservation,) = cloud.lease(lease).reservations
    cloud.clock.advance(DAY)
    seen = []

    def meddle(call: str) -> None:
        if call.startswith("PUT"):
            with pytest.raises(errors.Conflict):
                termination.delete(cloud.world, lease)
            wishes = {reservation.id: {"amount": 3}}
            with pytest.raises(errors.Conflict):
                change.update(cloud.world, lease, Update(wishes=wishes))
            seen.append(cloud.status(lease))
            change.update(cloud.world, lease, Update("renamed"))

    cloud.wire.before = meddle
    cloud.run_due()
    assert set(seen) == {"STARTING"}
    assert cloud.status(lease) == "ACTIVE"
    assert cloud.lease(lease).name == "renamed"


def test_a_host_is_not_removed_while_it_is_promised(cloud: Cloud) -> None:
    def remove() -> bool:
        try:
            registration.remove(cloud.world, "1")
        except errors.Conflict:
            return False
        return True

    outcomes = at_once([remove, lambda: try_order(cloud, 9)])
    assert outcomes.count(True) == 1
    assert len(cloud.children()) == (1 if outcomes[0] else 2)
    cloud.assert_consistent()


def test_what_a_change_is_about_to_take_is_not_promised(cloud: Cloud) -> None:
    lease = cloud.order(3)
    cloud.run_due(advance=DAY)
    (reservation,) = cloud.lease(lease).reservations
    ordered: list[bool] = []

    def order(call: str) -> None:
        if call.startswith("PUT") and not ordered:
            ordered.append(try_order(cloud, 5))

    cloud.wire.before = order
    wishes = {reservation.id: {"amount": 12}}
    change.update(cloud.world, lease, Update(wishes=wishes))
    assert ordered == [False]
    assert try_order(cloud, 4)
    assert cloud.count_slots() == 16
    cloud.assert_consistent()


def test_no_slot_is_promised_on_a_host_that_is_being_removed(cloud: Cloud) -> None:
    ordered: list[bool] = []

    def order(call: str) -> None:
        if call.startswith(("PUT", "DELETE")) and not ordered:
            # Nor does the watch find that there is nothing wrong with it.
            health.watch(cloud.world)
            ordered.append(try_order(cloud, 9))
            ordered.append(try_order(cloud, 8))

    cloud.wire.before = order
    registration.remove(cloud.world, "1")
    assert ordered == [False, True]
    assert list(cloud.children()) == ["blazar_compute-2"]
    cloud.assert_consistent()


def test_a_lease_that_is_changed_meanwhile_keeps_its_new_name(cloud: Cloud) -> None:
    lease = cloud.order(3)
    cloud.run_due(advance=DAY)
    (reservation,) = cloud.lease(lease).reservations

    def rename(call: str) -> None:
        change.update(cloud.world, lease, Update("renamed"))

    cloud.wire.before = rename
    wishes = {reservation.id: {"amount": 4}}
    change.update(cloud.world, lease, Update(wishes=wishes))
    assert len(cloud.slots(lease)) == 4
    assert cloud.lease(lease).name == "renamed"


def test_a_change_is_not_completed_while_the_watch_moves_leases(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = cloud.order(2)
    (reservation,) = cloud.lease(lease).reservations
    look = health._displaced
    looking, changed = threading.Event(), threading.Event()

    def look_for_long(*arguments: Any) -> Any:
        looking.set()
        changed.wait(1)
        return look(*arguments)

    monkeypatch.setattr(health, "_displaced", look_for_long)
    with ThreadPoolExecutor() as pool:
        watching = []

        def run(*_: object) -> None:
            cloud.give("compute-1", VCPU=1, MEMORY_MB=8192, DISK_GB=100)
            watching.append(pool.submit(health.watch, cloud.world))
            assert looking.wait(30)

        monkeypatch.setattr(execution, "run", run)
        wishes = {reservation.id: {"vcpus": 4}}
        longer = Update(end=TODAY + 2 * DAY, wishes=wishes)
        change.update(cloud.world, lease, longer)
        changed.set()
        watching[0].result()
    monkeypatch.undo()

    def assert_promised(host_id: int) -> None:
        known = cloud.lease(lease)
        size = known.reservations[0].wish.size
        assert (known.interval.end, size.vcpus) == (TODAY + 2 * DAY, 4)
        held = cloud.world.database.read(
            lambda connection: allocations.list_every(
                connection, cloud.world.rules.cleaning, cloud.clock.now()
            )
        )
        assert held == [Holding(host_id, reservation.id, known.interval, size, 2)]

    assert_promised(1)
    # The next one finds that there is no room.
    health.watch(cloud.world)
    assert_promised(2)


def test_a_process_that_was_thought_dead_stops(cloud: Cloud) -> None:
    lease = cloud.order(2)

    def sleep(call: str) -> None:
        if "/resource_classes" in call:
            cloud.wire.after = lambda call: None
            # Another process goes on with the start.
            cloud.run_due(advance=HOUR)
            assert cloud.status(lease) == "ACTIVE"
            termination.delete(cloud.world, lease)
            cloud.wire.calls.clear()

    cloud.wire.after = sleep
    cloud.run_due(advance=DAY)
    assert cloud.wire.calls == []
    assert cloud.world.database.read(flavors.list_flavors) == []
    cloud.assert_consistent()


def test_an_end_that_takes_long_is_not_taken_for_dead(
    cloud: Cloud,
) -> None:
    for number in range(3, 17):
        cloud.make_host(f"compute-{number}")
        cloud.register(f"compute-{number}")
    lease = cloud.order(16, False)
    cloud.run_due(advance=DAY)
    servers = [cloud.boot(lease) for _ in range(16)]
    seen: list[str] = []

    def list_expired(connection: sa.Connection) -> list[claims.Claim]:
        return claims.list_expired(
            connection, cloud.clock.now(), cloud.world.rules.claim
        )

    def be_slow(call: str) -> None:
        cloud.clock.advance(datetime.timedelta(seconds=25))
        assert not cloud.world.database.read(list_expired), call
        if call.startswith("DELETE /allocations"):
            seen.append(call)
            cloud.wire.before = lambda call: None
            # Another process finds nothing to take over.
            cloud.run_due()
            cloud.wire.before = be_slow

    cloud.wire.before = be_slow
    cloud.run_due(advance=2 * HOUR)
    assert sorted(seen) == sorted(f"DELETE /allocations/{each}" for each in servers)
    assert cloud.status(lease) == "TERMINATED"
    cloud.assert_consistent()


@pytest.mark.skipif(backends.KIND == "sqlite", reason="it has one writer at a time")
def test_a_lease_is_deleted_while_slots_of_another_are_written(cloud: Cloud) -> None:
    one, other = cloud.order(1), cloud.order(1)
    (reservation,) = cloud.lease(one).reservations
    database = cloud.world.database
    with database.engine.connect() as connection, connection.begin():
        # Not committed yet.
        allocations.insert(
            connection, reservation.id, {1: 1}, cloud.lease(one).interval, SMALL
        )
        database.write(lambda second: leases.delete(second, other), attempts=1)
    assert cloud.slots(other) == []


def test_the_start_moves_while_other_processes_look(cloud: Cloud) -> None:
    lease = cloud.order(2)
    cloud.clock.advance(DAY)
    later = Update(start=TODAY + DAY + HOUR)

    def move() -> bool:
        try:
            change.update(cloud.world, lease, later)
        except errors.Conflict:
            return False
        return True

    def look() -> bool:
        cloud.run_due()
        return True

    moved, _ = at_once([move, look])
    assert cloud.status(lease) == ("PENDING" if moved else "ACTIVE")
    cloud.assert_consistent()

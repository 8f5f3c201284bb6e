"""Whatever fails in the middle of an operation, the operation ends as it should.

Each operation is repeated; each time something else fails: the first call to Placement,
the second, and so on, until it succeeds undisturbed.

While a fault stays, an operation says that it waits; once it is over, the operation
ends without help. All of it takes minutes: ``tox -e failures``. Otherwise the faults
that leave something behind happen at one of the first calls, and a few of the others.
"""

import datetime
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from keystoneauth1 import exceptions as keystone

from placement_foundation import errors
from placement_reservations import state
from placement_reservations.lifecycle import change, health, registration, termination
from placement_reservations.lifecycle.change import Update
from placement_reservations.lifecycle.turn import Loop
from placement_reservations.store import debt as debts
from placement_reservations.store import host as hosts
from placement_reservations.world import World
from tests.reservations.cloud import DAY, HOUR, TODAY, Answered, Cloud, Killed

EVERY_CALL = bool(os.environ.get("PLACEMENT_TEST_EVERY_CALL"))
# So many calls lie between two faults, unless each call sees one.
STRIDE = 16
LONG = datetime.timedelta(minutes=15)
MINUTE = datetime.timedelta(minutes=1)

# Breaks a call, before or after it is executed, whose number it is given.
Fault = Callable[[int], None]
FAILURES = (500, 502, 503, 504)


def kill(number: int) -> None:
    raise Killed


def refuse(number: int) -> None:
    raise keystone.ConnectFailure("nobody answers")


def close(number: int) -> None:
    raise keystone.UnknownConnectionError("the connection is closed", OSError())


def be_slow(number: int) -> None:
    raise keystone.ConnectTimeout("it timed out")


def fail(number: int) -> None:
    raise Answered(FAILURES[number % len(FAILURES)])


def conflict(number: int) -> None:
    raise Answered(409)


FAULTS: dict[str, tuple[str, Fault]] = {
    "killed before a call": ("before", kill),
    "killed after a call": ("after", kill),
    "Placement is down": ("before", refuse),
    "a connection is closed": ("after", close),
    "an answer is lost": ("after", be_slow),
    "Placement fails before a call": ("before", fail),
    "Placement fails after a call": ("after", fail),
}
SUBTLE = ("killed after a call", "an answer is lost", "Placement fails before a call")
# A conflict is raised again and again for the writes of a start.
STARTS = {**FAULTS, "Placement answers 409": ("before", conflict)}
BREAKS = pytest.mark.parametrize("fault", FAULTS if EVERY_CALL else SUBTLE)


@contextmanager
def broken(cloud: Cloud, fault: str, at: int, *, stays: bool) -> Iterator[list[str]]:
    """Make a call fail, and all calls after it if the fault ``stays``."""
    when, happen = STARTS[fault]
    calls: list[str] = []

    def count(call: str) -> None:
        calls.append(call)
        if len(calls) == at or (stays and len(calls) > at):
            happen(len(calls))

    setattr(cloud.wire, when, count)
    try:
        yield calls
    finally:
        setattr(cloud.wire, when, lambda call: None)


def disturb(
    cloud: Cloud,
    fault: str,
    work: Callable[[], object],
    check: Callable[[], object] = lambda: None,
) -> Iterator[bool]:
    """Repeat an operation with a fault at each of its calls in turn.

    Yields after each repetition whether the operation was carried out all the same.

    :param check: what is to be true while a fault stays
    """
    first = 1 if EVERY_CALL else 1 + list(STARTS).index(fault)
    for at in range(first, 60, 1 if EVERY_CALL else STRIDE):
        for stays in (False, True) if EVERY_CALL else (at % 2 == 0,):
            done = False
            with broken(cloud, fault, at, stays=stays) as calls:
                try:
                    work()
                    done = True
                except (Killed, errors.Unavailable):
                    pass
                if stays and len(calls) >= at and not fault.startswith("killed"):
                    check()
            # A killed process does not renew its claims.
            yield done
        if len(calls) < at:
            return
    raise AssertionError("there is no end to it")


def recover(cloud: Cloud) -> None:
    cloud.run_due(advance=datetime.timedelta(minutes=4))
    cloud.run_due()


@BREAKS
def test_a_lease_is_made_or_was_never_there(cloud: Cloud, fault: str) -> None:
    made: list[str] = []

    def work() -> None:
        made.append(cloud.order(5))

    for done in disturb(cloud, fault, work):
        recover(cloud)
        cloud.assert_consistent()
        assert cloud.count_slots() == (5 if done else 0)
        if done:
            termination.delete(cloud.world, made[-1])
    assert made


@pytest.mark.parametrize("fault", STARTS if EVERY_CALL else SUBTLE)
def test_a_start_is_completed_whatever_fails_in_it(cloud: Cloud, fault: str) -> None:
    leases: list[str] = []

    def work() -> None:
        leases.append(cloud.order(9, start=cloud.clock.time.replace(second=0)))
        cloud.run_due()

    def check() -> None:
        for lease in leases:
            for _ in range(2):
                waiting = cloud.lease(lease)
                assert (waiting.status, waiting.degraded) == ("STARTING", True)
                assert waiting.status_reason
                assert cloud.events(lease)["start_lease"] == "IN_PROGRESS"
                cloud.run_due(advance=MINUTE)

    for _ in disturb(cloud, fault, work, check):
        recover(cloud)
        cloud.assert_consistent()
        for lease in leases:
            assert cloud.status(lease) == "ACTIVE"
            assert cloud.events(lease)["start_lease"] == "DONE"
            assert cloud.lease(lease).status_reason is None
            assert not cloud.lease(lease).degraded
            termination.delete(cloud.world, lease)
        leases.clear()
        assert cloud.classes() == set()
        assert cloud.inventories() == {}


@BREAKS
def test_a_repair_is_completed_whatever_fails_in_it(cloud: Cloud, fault: str) -> None:
    lease = cloud.order(9, start=TODAY, hours=10_000)
    cloud.run_due()

    def work() -> None:
        cloud.remove_slots()
        health.watch(cloud.world)

    def check() -> None:
        noticed = bool(cloud.world.database.read(debts.list_subjects))
        for _ in range(2):
            assert cloud.lease(lease).status == "ACTIVE"
            assert cloud.lease(lease).degraded == noticed
            assert (cloud.lease(lease).status_reason is not None) == noticed
            cloud.run_due(advance=MINUTE)
            health.watch(cloud.world)

    for _ in disturb(cloud, fault, work, check):
        recover(cloud)
        health.watch(cloud.world)
        assert cloud.lease(lease).status_reason is None
        assert not cloud.lease(lease).degraded
        cloud.assert_consistent()


@BREAKS
def test_an_end_leaves_nothing_in_the_end(cloud: Cloud, fault: str) -> None:
    leases: list[str] = []

    def work() -> None:
        cloud.run_due()

    def prepare() -> None:
        now = cloud.clock.time.replace(second=0)
        lease = cloud.order(9, start=now, hours=1)
        cloud.run_due()
        assert cloud.boot(lease)
        leases.append(lease)
        cloud.clock.advance(HOUR)

    def check() -> None:
        assert cloud.status(leases[-1]) == "TERMINATING"
        assert cloud.events(leases[-1])["end_lease"] == "IN_PROGRESS"

    prepare()
    for _ in disturb(cloud, fault, work, check):
        recover(cloud)
        assert cloud.status(leases[-1]) == "TERMINATED"
        assert cloud.classes() == set()
        assert cloud.inventories() == {}
        assert cloud.count_slots() == 0
        prepare()


def test_an_outage_at_the_end_lasts_longer_than_patience(cloud: Cloud) -> None:
    lease = cloud.order(3)
    cloud.turn(advance=DAY)
    server = cloud.boot(lease)
    with cloud.wire.cut():
        cloud.turn(advance=2 * HOUR)
        assert cloud.status(lease) == "TERMINATING"
        cloud.turn(advance=LONG)
        assert cloud.status(lease) == "ERROR"
        assert cloud.events(lease)["end_lease"] == "ERROR"
    cloud.turn(advance=datetime.timedelta(seconds=10))
    assert cloud.status(lease) == "ERROR"
    cloud.turn(advance=datetime.timedelta(minutes=1))
    assert cloud.status(lease) == "TERMINATED"
    assert cloud.placement.get(f"/allocations/{server}")["allocations"] == {}
    cloud.assert_consistent()


@BREAKS
def test_a_deletion_continues(cloud: Cloud, fault: str) -> None:
    leases: list[str] = []

    def prepare() -> None:
        lease = cloud.order(9, start=cloud.clock.time.replace(second=0))
        cloud.run_due()
        assert cloud.boot(lease)
        leases.append(lease)

    def work() -> None:
        termination.delete(cloud.world, leases[-1])

    def check() -> None:
        left = cloud.lease(leases[-1])
        assert (left.status, left.degraded) == ("ERROR", True)
        assert left.status_reason

    prepare()
    for _ in disturb(cloud, fault, work, check):
        recover(cloud)
        try:
            status = cloud.status(leases[-1])
        except errors.NotFound:
            pass
        else:
            assert status == "ERROR"
            termination.delete(cloud.world, leases[-1])
        assert cloud.classes() == set()
        assert cloud.inventories() == {}
        assert cloud.count_slots() == 0
        prepare()


@BREAKS
def test_a_change_is_made_or_was_never_there(cloud: Cloud, fault: str) -> None:
    lease = cloud.order(3, start=TODAY, hours=1000)
    cloud.run_due()
    (reservation,) = cloud.lease(lease).reservations
    wanted = Update(end=TODAY + 1001 * HOUR, wishes={reservation.id: {"amount": 12}})

    def work() -> None:
        change.update(cloud.world, lease, wanted)

    def check() -> None:
        assert cloud.status(lease) == "ACTIVE"
        assert cloud.lease(lease).reservations == (reservation,)

    for done in disturb(cloud, fault, work, check):
        recover(cloud)
        assert cloud.status(lease) == "ACTIVE"
        assert len(cloud.slots(lease)) == (12 if done else 3)
        assert cloud.lease(lease).interval.end == TODAY + (1000 + done) * HOUR
        cloud.assert_consistent()
        if done:
            return


def test_a_change_leaves_the_repairs_after_another_one_to_be_done(cloud: Cloud) -> None:
    lease = cloud.order(8, start=TODAY, hours=10)
    cloud.run_due()
    (reservation,) = cloud.lease(lease).reservations
    more = Update(wishes={reservation.id: {"amount": 10}})

    def fail_from_now_on(call: str) -> None:
        if call.startswith("PUT") and call.endswith("/inventories"):
            cloud.wire.before = cloud.wire.after = be_down
            be_down(call)

    def be_down(call: str) -> None:
        raise Answered(500)

    cloud.wire.after = fail_from_now_on
    with pytest.raises(errors.Unavailable):
        change.update(cloud.world, lease, more)
    # This one needs nothing of Placement.
    change.update(cloud.world, lease, Update(end=TODAY + 8 * HOUR))
    cloud.wire.before = cloud.wire.after = lambda call: None
    assert len(cloud.inventories()[reservation.resource_class]) == 2
    recover(cloud)
    cloud.assert_consistent()
    assert cloud.world.database.read(debts.list_subjects) == []
    termination.delete(cloud.world, lease)
    assert cloud.classes() == set()
    assert cloud.inventories() == {}


@BREAKS
def test_a_host_is_added_or_was_never_there(cloud: Cloud, fault: str) -> None:
    cloud.make_host("compute-3")
    added = []

    def work() -> None:
        registration.add(cloud.world, "compute-3", {"gpu": "True"})

    for done in disturb(cloud, fault, work):
        recover(cloud)
        assert ("blazar_compute-3" in cloud.children()) == done
        assert ("compute-3" in cloud.pool()) == done
        if done:
            added.append(done)
            registration.remove(cloud.world, cloud.host_id("compute-3"))
    assert added


@BREAKS
def test_a_host_is_removed_or_still_there(cloud: Cloud, fault: str) -> None:
    removed = []

    def work() -> None:
        registration.remove(cloud.world, cloud.host_id("compute-2"))

    for done in disturb(cloud, fault, work):
        recover(cloud)
        assert ("blazar_compute-2" in cloud.children()) == (not done)
        assert ("compute-2" in cloud.pool()) == (not done)
        if done:
            removed.append(done)
            registration.add(cloud.world, "compute-2", {})
        else:
            assert cloud.host("compute-2").reservable
    assert removed


def test_a_host_that_cannot_be_stored_is_left_as_it_was(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.make_host("compute-3")

    def refuse(*_: object) -> None:
        raise errors.BadRequest("The database cannot store a value of this request.")

    with monkeypatch.context() as patch:
        patch.setattr(hosts, "insert", refuse)
        with pytest.raises(errors.BadRequest):
            cloud.register("compute-3", gpu="a\0b")
    assert "blazar_compute-3" not in cloud.children()
    assert "compute-3" not in cloud.pool()
    # It need not wait until the claim has expired.
    cloud.register("compute-3", gpu="ab")
    assert "compute-3" in cloud.pool()


def test_a_lease_with_a_bug_does_not_hold_up_the_others(
    cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    leases = [cloud.order(1) for _ in range(3)]
    disturbed: list[str] = []

    def stumble(call: str) -> None:
        disturbed.append(call)
        raise RuntimeError("this is a bug")

    def stumble_once(call: str) -> None:
        if not disturbed:
            stumble(call)

    cloud.wire.before = stumble
    cloud.run_due(advance=DAY)
    assert len(disturbed) == 3
    cloud.wire.before = stumble_once
    disturbed.clear()
    for started in (2, 3):
        # What was begun is continued once it is thought to be abandoned.
        cloud.run_due(advance=LONG / 3)
        found = [cloud.status(lease) for lease in leases]
        assert found.count(state.LeaseStatus.ACTIVE) == started
    cloud.assert_consistent()
    # These bugs are wanted.
    caplog.clear()


def test_the_loop_goes_on_after_a_turn_that_failed(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    turns: list[Loop] = []
    stop = threading.Event()

    def turn(loop: Loop) -> None:
        turns.append(loop)
        if len(turns) == 1:
            raise RuntimeError("this is a bug")
        stop.set()

    monkeypatch.setattr(Loop, "turn", turn)
    Loop(cloud.world).run(0, stop)
    assert len(turns) == 2
    # This bug is wanted.
    caplog.clear()


def test_leases_start_though_the_watch_fails(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lease = cloud.order(3)

    def watch(world: World) -> None:
        raise RuntimeError("this is a bug")

    monkeypatch.setattr(health, "watch", watch)
    cloud.turn(advance=DAY)
    assert cloud.status(lease) == "ACTIVE"
    # This bug is wanted.
    assert "hosts are not checked" in caplog.text
    caplog.clear()


def test_another_writer_is_no_obstacle(cloud: Cloud) -> None:
    lease = cloud.order(3)
    cloud.placement.call("PUT", "/resource_classes/CUSTOM_OTHER")
    child = cloud.children()["blazar_compute-1"]
    path = f"/resource_providers/{child}/inventories"

    def interfere(call: str) -> None:
        if call == f"GET {path}" and len(written) < 3:
            known = cloud.placement.get(path)
            known["inventories"]["CUSTOM_OTHER"] = {"total": len(written) + 1}
            assert cloud.placement.call("PUT", path, known).status == 200
            written.append(call)

    written: list[str] = []
    cloud.wire.after = interfere
    cloud.turn(advance=DAY)
    assert len(written) == 3
    assert cloud.status(lease) == "ACTIVE"
    (reservation,) = cloud.lease(lease).reservations
    assert cloud.inventories_of("compute-1") == {
        "CUSTOM_OTHER": 3,
        reservation.resource_class: 3,
    }


def test_servers_that_come_while_a_lease_ends_are_deleted_too(cloud: Cloud) -> None:
    lease = cloud.order(3)
    cloud.turn(advance=DAY)
    name = cloud.lease(lease).reservations[0].resource_class
    late: list[str | None] = []

    def boot(call: str) -> None:
        if call.startswith("DELETE") and call.endswith(name) and not late:
            late.append(None)
            late[0] = cloud.boot(lease)

    cloud.wire.before = boot
    termination.delete(cloud.world, lease)
    assert late[0]
    assert cloud.placement.get(f"/allocations/{late[0]}")["allocations"] == {}
    assert cloud.classes() == set()


def test_a_lease_that_was_not_ended_is_deleted_all_the_same(cloud: Cloud) -> None:
    lease = cloud.order(9)
    cloud.clock.advance(DAY)
    with pytest.raises(Killed), broken(cloud, "killed after a call", 5, stays=False):
        cloud.run_due()
    assert cloud.status(lease) == "STARTING"
    with pytest.raises(errors.Conflict, match="in progress"):
        termination.delete(cloud.world, lease)
    cloud.clock.advance(LONG)
    termination.delete(cloud.world, lease)
    assert cloud.classes() == set()
    assert cloud.inventories() == {}


def test_a_deletion_ends_a_change_that_was_interrupted(cloud: Cloud) -> None:
    lease = cloud.order(4, start=TODAY, hours=100)
    cloud.run_due()
    (reservation,) = cloud.lease(lease).reservations
    more = Update(wishes={reservation.id: {"amount": 10}})
    with pytest.raises(Killed), broken(cloud, "killed before a call", 1, stays=True):
        change.update(cloud.world, lease, more)
    cloud.clock.advance(LONG)
    with pytest.raises(errors.Unavailable), cloud.wire.cut():
        termination.delete(cloud.world, lease)
    assert cloud.status(lease) == "ERROR"
    # What the change wanted is free again.
    other = cloud.order(12, start=TODAY + HOUR)
    change.update(cloud.world, lease, Update(end=TODAY + 101 * HOUR))
    assert len(cloud.slots(lease)) == 4
    for each in (lease, other):
        termination.delete(cloud.world, each)
    cloud.assert_consistent()
    assert cloud.inventories() == {}

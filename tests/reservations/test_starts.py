"""Starts that fail: what may pass is tried again until the lease ends."""

import datetime

import pytest

from placement_foundation import errors
from placement_reservations.lifecycle import termination
from tests.reservations.cloud import DAY, HOUR, TODAY, Answered, Cloud

SECOND = datetime.timedelta(seconds=1)


def start_in_vain(cloud: Cloud, hours: float = 2) -> str:
    """Return a lease whose first attempt to start was during an outage."""
    lease = cloud.order(3, start=TODAY + DAY, hours=hours)
    with cloud.wire.cut():
        cloud.run_due(advance=DAY)
    assert cloud.status(lease) == "STARTING"
    return lease


def test_a_lease_starts_when_placement_is_back(cloud: Cloud) -> None:
    lease = start_in_vain(cloud)
    waiting = cloud.lease(lease)
    assert waiting.degraded
    assert "cannot connect" in (waiting.status_reason or "")
    assert cloud.events(lease)["start_lease"] == "IN_PROGRESS"
    assert {each.status for each in waiting.reservations} == {"pending"}
    cloud.run_due(advance=SECOND)
    started = cloud.lease(lease)
    assert (started.status, started.status_reason) == ("ACTIVE", None)
    assert not started.degraded
    assert cloud.events(lease)["start_lease"] == "DONE"
    cloud.assert_consistent()


def test_after_one_error_the_next_attempt_succeeds(cloud: Cloud) -> None:
    lease = cloud.order(3, start=TODAY + DAY)
    attempts: list[str] = []

    def fail_once(call: str) -> None:
        if call.startswith("PUT") and call.endswith("/inventories"):
            attempts.append(call)
            if len(attempts) == 1:
                raise Answered(500)

    cloud.wire.before = fail_once
    cloud.run_due(advance=DAY)
    assert cloud.status(lease) == "STARTING"
    cloud.run_due(advance=SECOND)
    assert cloud.status(lease) == "ACTIVE"
    assert attempts[1:] == attempts[:1]
    cloud.assert_consistent()


def test_an_outage_until_the_end_leaves_nothing(cloud: Cloud) -> None:
    lease = start_in_vain(cloud)
    with cloud.wire.cut():
        cloud.turn(advance=HOUR)
        assert cloud.status(lease) == "STARTING"
        cloud.turn(advance=HOUR)
        assert cloud.status(lease) in ("TERMINATING", "ERROR")
    cloud.turn(advance=HOUR)
    cloud.turn(advance=HOUR)
    ended = cloud.lease(lease)
    assert (ended.status, ended.status_reason) == ("TERMINATED", None)
    assert cloud.events(lease)["end_lease"] == "DONE"
    assert cloud.classes() == set()
    assert cloud.inventories() == {}
    assert cloud.count_slots() == 0


def test_one_that_waits_can_be_deleted_at_once(cloud: Cloud) -> None:
    lease = start_in_vain(cloud)
    termination.delete(cloud.world, lease)
    with pytest.raises(errors.NotFound):
        cloud.lease(lease)
    cloud.run_due(advance=HOUR)
    assert cloud.classes() == set()
    assert cloud.inventories() == {}


def test_one_that_is_deleted_during_the_outage_goes_when_it_is_over(
    cloud: Cloud,
) -> None:
    lease = start_in_vain(cloud)
    with cloud.wire.cut(), pytest.raises(errors.Unavailable):
        termination.delete(cloud.world, lease)
    termination.delete(cloud.world, lease)
    with pytest.raises(errors.NotFound):
        cloud.lease(lease)
    assert cloud.classes() == set()
    assert cloud.count_slots() == 0


def test_one_whose_host_is_gone_cannot_start(cloud: Cloud) -> None:
    lease = cloud.order(8, start=TODAY + DAY)
    root = cloud.hosts["compute-1"]
    for child in (cloud.children()["blazar_compute-1"], root):
        path = f"/resource_providers/{child}"
        assert cloud.placement.call("DELETE", path).status == 204
    cloud.run_due(advance=DAY)
    found = cloud.lease(lease)
    assert found.status == "ERROR"
    assert found.status_reason == "Placement does not know host compute-1."
    assert cloud.events(lease)["start_lease"] == "ERROR"


def test_a_class_removed_before_the_start_is_made_again(cloud: Cloud) -> None:
    lease = cloud.order(3, start=TODAY + DAY)
    cloud.remove_slots()
    cloud.run_due(advance=DAY)
    assert cloud.status(lease) == "ACTIVE"
    cloud.assert_consistent()

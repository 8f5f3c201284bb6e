"""What is promised can be booted: no promise counts on room that is not there."""

import dataclasses
import datetime
from functools import partial

import pytest

from placement_foundation import errors
from placement_reservations.capacity import Size
from placement_reservations.lifecycle import (
    change,
    execution,
    registration,
    sighting,
    termination,
)
from placement_reservations.lifecycle.change import Update
from placement_reservations.store import claim as claims
from placement_reservations.store import lease as leases
from placement_reservations.world import Rules
from tests.reservations.cloud import (
    DAY,
    HOUR,
    TODAY,
    Answered,
    Cloud,
    refusal,
)
from tests.threads import at_once

MINUTE = datetime.timedelta(minutes=1)
WHOLE = Size(8, 512, 5)
PAGE = b"<html>the balancer does not know this</html>"
ORDINARY = "resources=VCPU:{},MEMORY_MB:64,DISK_GB:1&in_tree={}"


def serve(cloud: Cloud, host: str, vcpus: int = 8) -> str:
    """Let an ordinary server onto a host, and return its id."""
    server = cloud.placement.boot(ORDINARY.format(vcpus, cloud.hosts[host]))
    assert server
    return server


def remove_host(cloud: Cloud, name: str) -> None:
    registration.remove(cloud.world, cloud.host_id(name))


def refused(cloud: Cloud, size: Size = WHOLE, amount: int = 1) -> str:
    with pytest.raises(errors.Conflict) as caught:
        cloud.order(amount, size=size)
    return str(caught.value)


@pytest.mark.parametrize(
    "units",
    [
        {"max_unit": 4},
        {"min_unit": 8},
        {"min_unit": 8, "step_size": 8},
        {"step_size": 3},
    ],
)
def test_a_slot_is_of_a_size_that_a_server_may_have(
    cloud: Cloud, units: dict[str, int]
) -> None:
    remove_host(cloud, "compute-2")
    size = Size(5, 64, 1)
    lease = cloud.order(1, size=size)
    cloud.change_inventory("compute-1", "VCPU", **units)
    assert "gives no server such an amount of vcpus" in refused(cloud, size)
    cloud.turn()
    assert "such an amount of vcpus" in (cloud.lease(lease).trouble or "")
    # The other host takes what was promised.
    cloud.register("compute-2")
    cloud.turn()
    assert not cloud.lease(lease).degraded
    cloud.run_due(advance=DAY)
    assert cloud.boot(lease, size)


def test_a_lease_starts_below_its_own_host(cloud: Cloud) -> None:
    lease = cloud.order(1, size=WHOLE)
    old = cloud.hosts["compute-1"]
    body = {"name": "compute-1-old"}
    assert cloud.placement.call("PUT", f"/resource_providers/{old}", body).status == 200
    serve(cloud, "compute-1")
    cloud.make_host("compute-1")
    cloud.run_due(advance=DAY)
    waiting = cloud.lease(lease)
    assert waiting.status == "STARTING"
    assert "is not a child of host compute-1" in (waiting.trouble or "")
    child = cloud.children()["blazar_compute-1"]
    assert cloud.placement.call("DELETE", f"/resource_providers/{child}").status == 204
    cloud.run_due(advance=MINUTE)
    assert cloud.status(lease) == "ACTIVE"
    assert cloud.boot(lease, WHOLE)


def test_the_slots_of_a_host_that_was_renamed_are_reported_and_removed(
    cloud: Cloud,
) -> None:
    lease = cloud.order(1, size=WHOLE)
    cloud.run_due(advance=DAY)
    body = {"name": "compute-1-old"}
    path = f"/resource_providers/{cloud.hosts['compute-1']}"
    assert cloud.placement.call("PUT", path, body).status == 200
    cloud.make_host("compute-1")
    cloud.turn()
    assert "is not a child of host compute-1" in (cloud.lease(lease).trouble or "")
    termination.delete(cloud.world, lease)
    assert cloud.classes() == set()


def test_what_could_not_be_ended_stays_promised(cloud: Cloud) -> None:
    remove_host(cloud, "compute-2")
    lease = cloud.order(1, size=WHOLE, start=TODAY)
    cloud.run_due()
    assert cloud.boot(lease, WHOLE)
    later = cloud.order(1, size=WHOLE, start=TODAY + 3 * HOUR)

    def fail(call: str) -> None:
        if call.startswith("DELETE /allocations"):
            raise Answered(500)

    cloud.wire.before = fail
    cloud.run_due(advance=2 * HOUR)
    assert cloud.status(lease) == "TERMINATING"
    assert "too little vcpus" in refused(cloud)
    cloud.turn(advance=30 * MINUTE)
    assert cloud.status(lease) == "ERROR"
    assert "too little vcpus" in refused(cloud)
    assert "too little vcpus" in (cloud.lease(later).trouble or "")
    cloud.wire.before = lambda call: None
    cloud.turn(advance=2 * MINUTE)
    cloud.turn()
    assert cloud.status(lease) == "TERMINATED"
    assert not cloud.lease(later).degraded
    assert cloud.order(1, size=WHOLE)


def test_ordinary_servers_on_a_host_count(cloud: Cloud) -> None:
    remove_host(cloud, "compute-2")
    server = serve(cloud, "compute-1", 6)
    assert "as servers without a reservation are on it" in refused(cloud)
    lease = cloud.order(2, start=TODAY)
    cloud.run_due()
    # Its own servers use what was promised.
    assert cloud.boot(lease)
    assert cloud.boot(lease)
    cloud.turn()
    assert not cloud.lease(lease).degraded
    assert "too little vcpus" in refused(cloud, Size(7, 64, 1))
    assert cloud.placement.call("DELETE", f"/allocations/{server}").status == 204
    assert cloud.order(1, size=WHOLE)


def test_a_lease_is_degraded_by_ordinary_servers(cloud: Cloud) -> None:
    lease = cloud.order(1, size=WHOLE, start=TODAY)
    cloud.run_due()
    server = serve(cloud, "compute-1", 1)
    cloud.turn()
    degraded = cloud.lease(lease)
    assert degraded.degraded
    assert degraded.trouble == (
        "Host 1 cannot keep 1 of its slots: it has too little vcpus, as servers "
        "without a reservation are on it."
    )
    assert cloud.placement.call("DELETE", f"/allocations/{server}").status == 204
    cloud.turn()
    assert cloud.lease(lease).trouble is None


def test_a_promise_is_about_the_inventory_as_it_is_now(cloud: Cloud) -> None:
    remove_host(cloud, "compute-2")
    cloud.change_inventory("compute-1", "MEMORY_MB", reserved=8192 - 512)
    assert cloud.order(1)
    assert "too little memory_mb" in refused(cloud, Size(1, 512, 1))
    # A change is a promise, too.
    cloud.change_inventory("compute-1", "MEMORY_MB", reserved=0)
    lease = cloud.order(1, start=TODAY + 2 * DAY)
    cloud.change_inventory("compute-1", "MEMORY_MB", reserved=8192 - 512)
    (reservation,) = cloud.lease(lease).reservations
    more = Update(wishes={reservation.id: {"amount": 2}})
    with pytest.raises(errors.Conflict, match="1 of 2 slots are free"):
        change.update(cloud.world, lease, more)


def test_a_host_that_grew_is_promised_at_once(cloud: Cloud) -> None:
    remove_host(cloud, "compute-2")
    cloud.give("compute-1", VCPU=16, MEMORY_MB=8192, DISK_GB=100)
    assert cloud.slots(cloud.order(12)) == [1] * 12


def test_a_refusal_does_not_wait_for_all_of_many_hosts(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sighting, "MOST_BEFORE_REFUSAL", 1)
    cloud.wire.calls.clear()
    refused(cloud, amount=3)
    looks = [call for call in cloud.wire.calls if "?name=compute-" in call]
    assert [call.partition("name=")[2] for call in looks] == ["compute-1"]


def test_nothing_is_promised_on_hosts_that_cannot_be_looked_at(cloud: Cloud) -> None:
    with cloud.wire.cut(), pytest.raises(errors.Unavailable):
        cloud.order(1)
    assert cloud.count_slots() == 0


def test_two_leases_are_prolonged_at_once(cloud: Cloud) -> None:
    remove_host(cloud, "compute-2")
    pair = [cloud.order(1, size=Size(4, 64, 1), start=TODAY) for _ in range(2)]
    cloud.run_due()
    for hours in range(3, 8):
        longer = Update(end=TODAY + hours * HOUR)
        at_once([partial(change.update, cloud.world, each, longer) for each in pair])
    assert all(cloud.lease(each).interval.end == TODAY + 7 * HOUR for each in pair)


def test_what_a_lease_has_and_is_to_get_counts_once(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_host(cloud, "compute-2")
    one, other = (cloud.order(1, size=Size(4, 64, 1), start=TODAY) for _ in range(2))
    cloud.run_due()
    longer = Update(end=TODAY + 3 * HOUR)
    run = execution.run

    def run_late(*arguments: object) -> None:
        monkeypatch.setattr(execution, "run", run)
        change.update(cloud.world, other, longer)
        run(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(execution, "run", run_late)
    change.update(cloud.world, one, longer)
    assert cloud.lease(one).interval == cloud.lease(other).interval
    assert cloud.lease(other).interval.end == TODAY + 3 * HOUR


def test_a_refused_prolongation_leaves_a_lease_and_its_servers(cloud: Cloud) -> None:
    remove_host(cloud, "compute-2")
    lease = cloud.order(1, size=WHOLE, start=TODAY)
    cloud.run_due()
    server = cloud.boot(lease, WHOLE)
    cloud.order(1, size=WHOLE, start=TODAY + 2 * HOUR)
    with pytest.raises(errors.Conflict) as caught:
        change.update(cloud.world, lease, Update(end=TODAY + 3 * HOUR))
    assert str(caught.value) == (
        "Not enough hosts available: what has started stays on its hosts. "
        "Host 1 has too little vcpus."
    )
    cloud.run_due(advance=HOUR)
    assert cloud.status(lease) == "ACTIVE"
    assert cloud.placement.get(f"/allocations/{server}")["allocations"]
    cloud.assert_consistent()


def test_room_is_cleaned_after_a_lease_that_is_gone(cloud: Cloud) -> None:
    rules = Rules(cleaning=HOUR)
    cloud.world = dataclasses.replace(cloud.world, rules=rules)
    remove_host(cloud, "compute-2")
    deleted = cloud.order(1, size=WHOLE, start=TODAY)
    cloud.run_due()
    termination.delete(cloud.world, deleted)

    def order(start: datetime.datetime) -> str:
        return cloud.order(1, size=WHOLE, start=start)

    for start in (TODAY, TODAY + 59 * MINUTE):
        with pytest.raises(errors.Conflict):
            order(start)
    ended = order(TODAY + 61 * MINUTE)
    cloud.run_due(advance=2 * HOUR)
    cloud.run_due(advance=2 * HOUR)
    assert cloud.status(ended) == "TERMINATED"
    with pytest.raises(errors.Conflict):
        order(TODAY + 4 * HOUR)
    order(TODAY + 5 * HOUR + MINUTE)
    # What never started leaves nothing to be cleaned.
    cloud.run_due(advance=DAY)
    never = order(TODAY + 3 * DAY)
    termination.delete(cloud.world, never)
    assert order(TODAY + 3 * DAY)
    for each in cloud.world.database.read(leases.list_leases):
        termination.delete(cloud.world, each.id)
    remove_host(cloud, "compute-1")


def test_a_clock_that_is_put_right_delays_nothing(cloud: Cloud) -> None:
    lease = cloud.order(1, start=TODAY + DAY, hours=100)
    cloud.clock.advance(2 * DAY)
    with cloud.wire.cut():
        cloud.run_due()
    assert cloud.status(lease) == "STARTING"
    cloud.clock.advance(-DAY)
    cloud.run_due()
    assert cloud.status(lease) == "ACTIVE"
    cloud.assert_consistent()


def test_a_killed_process_whose_clock_was_ahead_holds_nothing(cloud: Cloud) -> None:
    database, now = cloud.world.database, cloud.world.clock.now()
    term = cloud.world.rules.claim
    killed = claims.Claim("lease x", "a killed process", "start", {})
    database.write(lambda connection: claims.take(connection, killed, now + DAY + term))
    taken = database.write(
        lambda connection: claims.take_over(connection, killed, now, term)
    )
    assert taken
    assert taken.holder != killed.holder


def test_a_lease_that_waits_is_deleted_at_any_time(cloud: Cloud) -> None:
    lease = cloud.order(1, start=TODAY + DAY, hours=100)
    cloud.clock.advance(2 * DAY)
    with cloud.wire.cut():
        cloud.run_due()
    cloud.clock.advance(-2 * MINUTE)
    termination.delete(cloud.world, lease)
    assert cloud.classes() == set()


def test_a_failed_end_is_retried_after_a_clock_was_put_right(cloud: Cloud) -> None:
    lease = cloud.order(1, start=TODAY)
    cloud.run_due()
    cloud.clock.advance(3 * DAY)
    with cloud.wire.cut():
        cloud.run_due()
        cloud.run_due(advance=HOUR)
    assert cloud.status(lease) == "ERROR"
    cloud.clock.advance(-2 * DAY)
    cloud.turn()
    assert cloud.status(lease) == "TERMINATED"


@pytest.mark.parametrize("step", ["/resource_classes/", "/inventories/"])
def test_the_404_of_a_proxy_is_not_that_something_is_gone(
    cloud: Cloud, step: str
) -> None:
    lease = cloud.order(1, start=TODAY)
    cloud.run_due()

    def lose(call: str) -> None:
        if call.startswith("DELETE") and step in call:
            raise Answered(404, PAGE)

    cloud.wire.before = lose
    with pytest.raises(errors.Unavailable):
        termination.delete(cloud.world, lease)
    assert cloud.classes()
    cloud.wire.before = lambda call: None
    termination.delete(cloud.world, lease)
    assert cloud.classes() == set()


def test_the_404_of_a_proxy_does_not_end_a_server(cloud: Cloud) -> None:
    lease = cloud.order(1, start=TODAY)
    cloud.run_due()
    server = cloud.boot(lease)

    def lose(call: str) -> None:
        if call.endswith("/allocations") and call.startswith("GET"):
            raise Answered(404, PAGE)

    cloud.wire.before = lose
    with pytest.raises(errors.Unavailable):
        termination.delete(cloud.world, lease)
    cloud.wire.before = lambda call: None
    termination.delete(cloud.world, lease)
    assert cloud.placement.get(f"/allocations/{server}")["allocations"] == {}


@pytest.mark.parametrize(
    "answer",
    [
        Answered(200, PAGE),
        Answered(200, b'{"hello": "world"}'),
        *(Answered(status, PAGE) for status in (302, 400, 401, 404, 408, 413, 425)),
        *(Answered(status, PAGE) for status in (429, 499, 502)),
        refusal(409),
    ],
    ids=lambda answer: f"{answer.status} {answer.content[:6].decode()}",
)
def test_a_start_goes_on_after_what_placement_does_not_say(
    cloud: Cloud, answer: Answered
) -> None:
    lease = cloud.order(1, start=TODAY)

    def intercept(call: str) -> None:
        if "/inventories" in call:
            raise answer

    cloud.wire.before = intercept
    cloud.run_due()
    waiting = cloud.lease(lease)
    assert waiting.status == "STARTING"
    assert waiting.trouble
    cloud.wire.before = lambda call: None
    cloud.run_due(advance=MINUTE)
    assert cloud.status(lease) == "ACTIVE"


def test_a_changed_lease_that_does_not_fit_is_refused_with_reasons(
    cloud: Cloud,
) -> None:
    lease = cloud.order(1)
    (reservation,) = cloud.lease(lease).reservations
    more = Update(wishes={reservation.id: {"amount": 17}})
    with pytest.raises(errors.Conflict) as caught:
        change.update(cloud.world, lease, more)
    assert str(caught.value).startswith(
        "Not enough hosts available: 16 of 17 slots are free. Host 1 has room for"
    )

"""Hosts that fail or shrink, and the leases with slots on them."""

import datetime

from placement_reservations.capacity import Size
from placement_reservations.lifecycle import change, health, registration
from placement_reservations.lifecycle.change import Update
from placement_reservations.lifecycle.turn import Loop
from placement_reservations.store import debt as debts
from placement_reservations.store.lease import Lease
from tests.reservations.cloud import DAY, HOUR, TODAY, Cloud

DISABLED = "COMPUTE_STATUS_DISABLED"


def condition(lease: Lease) -> tuple[bool, bool, bool]:
    """Return whether a lease is degraded, lacks slots, and was moved."""
    (reservation,) = lease.reservations
    return lease.degraded, reservation.lacks is not None, reservation.resources_changed


def set_traits(cloud: Cloud, name: str, *traits: str) -> None:
    root = cloud.hosts[name]
    body = {
        "resource_provider_generation": cloud.placement.generation(root),
        "traits": list(traits),
    }
    path = f"/resource_providers/{root}/traits"
    assert cloud.placement.call("PUT", path, body).status == 200


def test_a_pending_lease_moves_off_a_disabled_host(cloud: Cloud) -> None:
    lease = cloud.order(5)
    assert cloud.slots(lease) == [1] * 5
    set_traits(cloud, "compute-1", DISABLED)
    cloud.turn()
    assert cloud.slots(lease) == [2] * 5
    assert condition(cloud.lease(lease)) == (False, False, True)
    assert not cloud.host("compute-1").reservable
    # No new slots on it are promised either.
    assert cloud.slots(cloud.order(3)) == [2] * 3
    cloud.turn(advance=DAY)
    assert cloud.status(lease) == "ACTIVE"
    cloud.assert_consistent()


def test_a_started_lease_is_degraded_until_the_host_is_back(cloud: Cloud) -> None:
    lease = cloud.order(5)
    cloud.turn(advance=DAY)
    set_traits(cloud, "compute-1", DISABLED)
    cloud.turn()
    assert condition(cloud.lease(lease)) == (True, True, False)
    assert cloud.slots(lease) == [1] * 5
    set_traits(cloud, "compute-1")
    cloud.turn()
    assert condition(cloud.lease(lease)) == (False, False, False)
    assert cloud.host("compute-1").reservable


def test_a_lease_without_other_room_waits_for_it(cloud: Cloud) -> None:
    lease = cloud.order(9)
    set_traits(cloud, "compute-2", DISABLED)
    cloud.turn()
    assert condition(cloud.lease(lease)) == (True, True, False)
    assert sorted(cloud.slots(lease)) == [1] * 8 + [2]
    cloud.make_host("compute-3")
    cloud.register("compute-3")
    cloud.turn()
    assert condition(cloud.lease(lease)) == (False, False, True)
    assert sorted(cloud.slots(lease)) == [1] * 8 + [3]


def test_a_change_to_what_there_is_room_for_makes_a_lease_whole(cloud: Cloud) -> None:
    lease = cloud.order(12)
    (reservation,) = cloud.lease(lease).reservations
    cloud.give("compute-2", VCPU=2, MEMORY_MB=8192, DISK_GB=100)
    cloud.turn()
    assert condition(cloud.lease(lease)) == (True, True, False)
    # This does not help.
    change.update(cloud.world, lease, Update(before_end=TODAY + DAY))
    assert condition(cloud.lease(lease)) == (True, True, False)
    less = Update(wishes={reservation.id: {"amount": 9}})
    change.update(cloud.world, lease, less)
    assert condition(cloud.lease(lease)) == (False, False, False)
    cloud.turn()
    assert condition(cloud.lease(lease)) == (False, False, False)


def test_each_lease_that_moves_leaves_less_room_for_the_next(cloud: Cloud) -> None:
    soon = [cloud.order(2) for _ in range(3)]
    later = [cloud.order(4, start=TODAY + 2 * DAY) for _ in range(3)]
    set_traits(cloud, "compute-1", DISABLED)
    cloud.turn()
    assert [cloud.slots(lease) for lease in soon] == [[2, 2]] * 3
    assert [cloud.slots(lease) for lease in later] == [[2] * 4, [1] * 4, [2] * 4]


def test_a_host_that_is_gone_has_failed(cloud: Cloud) -> None:
    lease = cloud.order(3)
    child = cloud.children()["blazar_compute-1"]
    for uuid in (child, cloud.hosts["compute-1"]):
        path = f"/resource_providers/{uuid}"
        assert cloud.placement.call("DELETE", path).status == 204
    cloud.turn(advance=DAY)
    assert cloud.status(lease) == "ACTIVE"
    assert cloud.slots(lease) == [2] * 3


def test_a_host_that_is_made_anew_is_in_the_pool_again(cloud: Cloud) -> None:
    for uuid in (cloud.children()["blazar_compute-1"], cloud.hosts["compute-1"]):
        path = f"/resource_providers/{uuid}"
        assert cloud.placement.call("DELETE", path).status == 204
    cloud.turn()
    assert not cloud.host("compute-1").reservable
    cloud.make_host("compute-1")
    cloud.turn()
    assert cloud.host("compute-1").reservable
    cloud.run_due()
    assert cloud.pool() == {"compute-1", "compute-2"}
    assert "blazar_compute-1" in cloud.children()
    assert cloud.world.database.read(debts.list_subjects) == []


def test_a_host_that_is_made_anew_between_two_watches_is_in_the_pool_again(
    cloud: Cloud,
) -> None:
    for uuid in (cloud.children()["blazar_compute-1"], cloud.hosts["compute-1"]):
        path = f"/resource_providers/{uuid}"
        assert cloud.placement.call("DELETE", path).status == 204
    cloud.make_host("compute-1")
    assert cloud.pool() == {"compute-2"}
    with cloud.wire.cut():
        cloud.turn()
    assert cloud.world.database.read(debts.list_subjects) == []
    for _ in range(2):
        # However often it is found.
        health.watch(cloud.world)
        assert cloud.world.database.read(debts.list_subjects) == ["host:compute-1"]
    cloud.run_due()
    assert cloud.pool() == {"compute-1", "compute-2"}
    assert "blazar_compute-1" in cloud.children()
    assert cloud.world.database.read(debts.list_subjects) == []


def test_leases_start_while_many_hosts_are_checked(cloud: Cloud) -> None:
    early = cloud.order(2)
    loop = Loop(cloud.world)
    started = []

    def be_slow(call: str) -> None:
        if call.startswith("GET") and "name=compute-" in call:
            started.append(cloud.status(early))
            cloud.clock.advance(datetime.timedelta(seconds=20))

    cloud.clock.advance(DAY - datetime.timedelta(seconds=30))
    cloud.wire.before = be_slow
    loop.turn()
    # It is due after the first host.
    assert started == ["PENDING", "ACTIVE"]
    cloud.assert_consistent()


def test_a_host_that_shrinks_keeps_what_is_most_important(cloud: Cloud) -> None:
    started = cloud.order(3)
    cloud.turn(advance=DAY)
    soon = cloud.order(3, start=TODAY + DAY + HOUR)
    later = cloud.order(5, start=TODAY + DAY + HOUR, size=Size(1, 64, 1))
    cloud.give("compute-1", VCPU=6, MEMORY_MB=8192, DISK_GB=100)
    cloud.turn()
    assert cloud.host("compute-1").size == Size(6, 8192, 100)
    assert cloud.slots(started) == [1] * 3
    assert cloud.slots(soon) == [1] * 3
    assert 1 not in cloud.slots(later)
    assert not any(cloud.lease(each).degraded for each in (started, soon, later))
    cloud.give("compute-1", VCPU=2, MEMORY_MB=8192, DISK_GB=100)
    cloud.turn()
    assert condition(cloud.lease(started)) == (True, True, False)
    assert cloud.status(started) == "ACTIVE"
    # Room that comes back makes it whole.
    cloud.give("compute-1", VCPU=8, MEMORY_MB=8192, DISK_GB=100)
    cloud.turn()
    assert condition(cloud.lease(started)) == (False, False, False)


def test_an_outage_of_placement_is_not_a_failure_of_hosts(cloud: Cloud) -> None:
    lease = cloud.order(5)
    with cloud.wire.cut():
        cloud.turn()
    assert cloud.host("compute-1").reservable
    assert condition(cloud.lease(lease)) == (False, False, False)


def test_hosts_are_checked_though_the_clock_is_set_back(cloud: Cloud) -> None:
    loop = Loop(cloud.world)
    loop.turn()
    cloud.clock.advance(-DAY)
    set_traits(cloud, "compute-1", DISABLED)
    loop.turn()
    assert not cloud.host("compute-1").reservable
    cloud.wire.calls.clear()
    loop.turn()
    assert cloud.wire.calls == []


def test_a_host_that_is_added_does_not_get_what_another_had(cloud: Cloud) -> None:
    # SQLite gives the id of the last row to the next one.
    cloud.make_host("tiny", vcpus=1)
    swapped: list[str] = []

    def swap(call: str) -> None:
        path = f"/resource_providers/{cloud.hosts['compute-2']}/traits"
        if call == f"GET {path}" and not swapped:
            swapped.append(call)
            registration.remove(cloud.world, "2")
            registration.add(cloud.world, "tiny", {})

    cloud.wire.after = swap
    health.watch(cloud.world)
    assert swapped
    assert cloud.host("tiny").size.vcpus == 1

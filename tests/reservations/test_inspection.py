"""Slots of active leases that other clients remove or change in Placement."""

from collections.abc import Callable
from typing import Any

import pytest

from placement_reservations.lifecycle import execution, health
from placement_reservations.lifecycle.change import Update, update
from placement_reservations.store import claim as claims
from placement_reservations.store import lease as leases
from tests.reservations.cloud import HOUR, TODAY, Answered, Cloud


@pytest.fixture
def lease(cloud: Cloud) -> str:
    """Give an active lease with slots on both hosts."""
    lease = cloud.order(9, start=TODAY, hours=1000)
    cloud.run_due()
    assert cloud.status(lease) == "ACTIVE"
    return lease


def change(cloud: Cloud, host: str, **members: int) -> None:
    """Change the inventory of the slots on a host by hand."""
    path = f"/resource_providers/{cloud.children()[f'blazar_{host}']}/inventories"
    known: Any = cloud.placement.get(path)
    for inventory in known["inventories"].values():
        inventory.update(members)
    assert cloud.placement.call("PUT", path, known).status == 200


def delete_inventories(cloud: Cloud, host: str) -> None:
    path = f"/resource_providers/{cloud.children()[f'blazar_{host}']}/inventories"
    assert cloud.placement.call("DELETE", path).status == 204


def delete_class(cloud: Cloud) -> None:
    """Delete the class of the slots, which must be nobody's inventory for that."""
    for host in cloud.hosts:
        delete_inventories(cloud, host)
    (name,) = cloud.classes()
    assert cloud.placement.call("DELETE", f"/resource_classes/{name}").status == 204


DAMAGES: dict[str, Callable[[Cloud], None]] = {
    "the providers and the class": Cloud.remove_slots,
    "the class": delete_class,
    "an inventory": lambda cloud: delete_inventories(cloud, "compute-1"),
    "the total": lambda cloud: change(cloud, "compute-1", total=2),
    "what is reserved": lambda cloud: change(cloud, "compute-1", reserved=3),
    "the size of an allocation": lambda cloud: change(cloud, "compute-2", max_unit=5),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_another_client_removed_or_changed_is_repaired(
    cloud: Cloud, lease: str, damage: str
) -> None:
    DAMAGES[damage](cloud)
    health.watch(cloud.world)
    cloud.assert_consistent()
    assert not cloud.lease(lease).degraded
    assert cloud.lease(lease).status_reason is None
    assert cloud.boot(lease)


def test_a_lease_is_degraded_until_it_can_be_repaired(cloud: Cloud, lease: str) -> None:
    cloud.remove_slots()

    def refuse(call: str) -> None:
        if not call.startswith("GET"):
            raise Answered(503)

    cloud.wire.before = refuse
    for _ in range(3):
        health.watch(cloud.world)
        found = cloud.lease(lease)
        assert (found.status, found.degraded) == ("ACTIVE", True)
        assert "HTTP 503" in (found.status_reason or "")
    cloud.wire.before = lambda call: None
    cloud.run_due()
    cloud.assert_consistent()
    assert not cloud.lease(lease).degraded


def test_a_watch_with_nothing_to_repair_only_reads(cloud: Cloud, lease: str) -> None:
    cloud.wire.calls.clear()
    before = cloud.lease(lease)
    health.watch(cloud.world)
    assert {call.split()[0] for call in cloud.wire.calls} == {"GET"}
    assert cloud.lease(lease) == before


def test_an_outage_is_no_damage(cloud: Cloud, lease: str) -> None:
    with cloud.wire.cut():
        health.watch(cloud.world)
    assert not cloud.lease(lease).degraded


def test_servers_beyond_the_promise_are_reported_and_left_alone(
    cloud: Cloud, lease: str
) -> None:
    change(cloud, "compute-1", total=20)
    change(cloud, "compute-2", total=20)
    for name in cloud.hosts:
        cloud.give(name, VCPU=100, MEMORY_MB=99999, DISK_GB=999)
    servers = [cloud.boot(lease) for _ in range(40)]
    assert all(servers)
    for _ in range(2):
        health.watch(cloud.world)
        found = cloud.lease(lease)
        assert found.degraded
        assert "20 servers use the" in (found.status_reason or "")
        cloud.assert_consistent()
    for server in servers:
        path = f"/allocations/{server}"
        assert cloud.placement.get(path)["allocations"]
        assert cloud.placement.call("DELETE", path).status == 204
    health.watch(cloud.world)
    assert not cloud.lease(lease).degraded


def test_a_lease_that_is_being_worked_on_is_left_alone(
    cloud: Cloud, lease: str
) -> None:
    cloud.remove_slots()
    claim = cloud.world.database.write(
        lambda connection: execution.begin(
            connection, cloud.world, leases.subject(lease), "update"
        )
    )
    health.watch(cloud.world)
    assert cloud.inventories() == {}
    cloud.world.database.write(lambda connection: claims.release(connection, claim))
    health.watch(cloud.world)
    cloud.assert_consistent()


def test_a_lease_that_is_changed_while_hosts_are_looked_at_has_no_trouble(
    cloud: Cloud,
) -> None:
    lease = cloud.order(2, start=TODAY)
    cloud.run_due()
    (reservation,) = cloud.lease(lease).reservations
    wishes = [{reservation.id: {"amount": 4}}]

    def use_more() -> None:
        while wishes:
            update(cloud.world, lease, Update(wishes=wishes.pop()))
            for _ in range(4):
                assert cloud.boot(lease)

    health.watch(cloud.world, use_more)
    assert not cloud.lease(lease).degraded


def test_a_lease_that_ends_while_hosts_are_looked_at_is_not_repaired(
    cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    lease = cloud.order(2, start=TODAY)
    cloud.run_due()
    health.watch(cloud.world, lambda: cloud.run_due(advance=3 * HOUR))
    assert cloud.status(lease) == "TERMINATED"
    assert "has no" not in caplog.text
    cloud.assert_consistent()

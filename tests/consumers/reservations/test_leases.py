"""Leases from their first to their last day."""

from placement_consumers.reservations.lifecycle import termination
from tests.consumers.reservations.cloud import DAY, HOUR, Cloud


def test_a_lease_lives_and_leaves_nothing(cloud: Cloud) -> None:
    lease = cloud.order(5)
    assert cloud.status(lease) == "PENDING"
    assert cloud.slots(lease) == [1] * 5
    assert cloud.inventories() == {}
    (reservation,) = cloud.lease(lease).reservations
    assert cloud.classes() == {reservation.resource_class}
    cloud.turn(advance=DAY)
    assert cloud.status(lease) == "ACTIVE"
    assert cloud.inventories() == {reservation.resource_class: {"compute-1": 5}}
    servers = [cloud.boot(lease) for _ in range(6)]
    assert None not in servers[:5]
    assert servers[5] is None
    cloud.turn(advance=HOUR)
    assert cloud.events(lease) == {
        "start_lease": "DONE",
        "before_end_lease": "DONE",
        "end_lease": "UNDONE",
    }
    cloud.turn(advance=HOUR)
    assert cloud.status(lease) == "TERMINATED"
    assert cloud.slots(lease) == []
    assert cloud.classes() == set()
    assert cloud.placement.usages(cloud.hosts["compute-1"])["VCPU"] == 0
    cloud.assert_consistent()
    termination.delete(cloud.world, lease)

"""Slots are promised only of what Placement allocates."""

import dataclasses

import pytest

from placement_foundation import errors
from placement_reservations.capacity import Size
from placement_reservations.compute.placement import PlacementCompute
from placement_reservations.lifecycle import health
from tests.reservations.cloud import TODAY, Cloud

ONE_GIB = Size(1, 1024, 1)


@pytest.fixture
def cloud(cloud: Cloud) -> Cloud:
    """Give one host with 4 of its 8 GiB reserved; the other one is full of itself."""
    cloud.change_inventory("compute-1", "MEMORY_MB", reserved=4096)
    cloud.change_inventory("compute-2", "VCPU", reserved=8)
    health.watch(cloud.world)
    return cloud


def test_what_is_promised_can_be_used(cloud: Cloud) -> None:
    lease = cloud.order(4, size=ONE_GIB, start=TODAY)
    with pytest.raises(errors.Conflict, match="Not enough hosts"):
        cloud.order(1, size=ONE_GIB, start=TODAY)
    cloud.run_due()
    assert all(cloud.boot(lease, ONE_GIB) for _ in range(4))
    assert cloud.boot(lease, ONE_GIB) is None


def test_a_host_offers_what_it_does_not_reserve_when_it_is_added(cloud: Cloud) -> None:
    cloud.make_host("compute-3")
    cloud.change_inventory("compute-3", "DISK_GB", reserved=30)
    cloud.register("compute-3")
    assert cloud.host("compute-3").size == Size(8, 8192, 70)


@pytest.mark.parametrize(
    ("ratio", "use_ratio", "vcpus"),
    [(4.0, False, 6), (4.0, True, 24), (0.5, False, 3), (0.5, True, 3)],
)
def test_overcommitment_counts_only_if_wanted(
    cloud: Cloud, ratio: float, use_ratio: bool, vcpus: int
) -> None:
    cloud.change_inventory("compute-1", "VCPU", reserved=2, allocation_ratio=ratio)
    compute = cloud.world.compute
    assert isinstance(compute, PlacementCompute)
    found = dataclasses.replace(compute, use_ratio=use_ratio).find_host("compute-1")
    assert found is not None
    assert found.size.vcpus == vcpus


@pytest.mark.parametrize("ratio", [999_999.0, 1e38])
def test_a_ratio_that_leaves_no_limit_counts_as_the_largest_amount(
    cloud: Cloud, ratio: float
) -> None:
    compute = cloud.world.compute
    assert isinstance(compute, PlacementCompute)
    overcommitted = dataclasses.replace(compute, use_ratio=True)
    cloud.world = dataclasses.replace(cloud.world, compute=overcommitted)
    cloud.make_host("compute-3")
    for name in ("compute-1", "compute-3"):
        cloud.change_inventory(name, "MEMORY_MB", reserved=0, allocation_ratio=ratio)
    cloud.register("compute-3")
    health.watch(cloud.world)
    for name in ("compute-1", "compute-3"):
        assert cloud.host(name).size == Size(8, 2**31 - 1, 100)
    assert len(cloud.slots(cloud.order(16))) == 16


def test_reserving_more_later_degrades_what_was_promised(cloud: Cloud) -> None:
    lease = cloud.order(4, size=ONE_GIB, start=TODAY)
    cloud.run_due()
    cloud.change_inventory("compute-1", "MEMORY_MB", reserved=6144)
    health.watch(cloud.world)
    assert cloud.lease(lease).degraded
    cloud.change_inventory("compute-1", "MEMORY_MB", reserved=4096)
    health.watch(cloud.world)
    assert not cloud.lease(lease).degraded

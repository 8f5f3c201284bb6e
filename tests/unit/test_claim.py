"""Whether there is room for what consumers claim."""

import pytest

from placement import errors
from placement.model.allocation import Claim, Place
from placement.model.consumer import WantedConsumer
from placement.model.inventory import InventoryUsage
from placement.objects.replacing import check_room

SOMEBODY = WantedConsumer("somebody", "project", "user")
CPU = ("host", "VCPU")


def claims(*amounts: dict[str, dict[str, int]]) -> list[Claim]:
    return [Claim(SOMEBODY, each) for each in amounts]


def refusal(wanted: list[Claim], inventories: dict[Place, InventoryUsage]) -> str:
    with pytest.raises(errors.Conflict) as caught:
        check_room(wanted, inventories, {})
    return str(caught.value)


def test_a_negative_capacity_holds_nothing() -> None:
    for inventory in (
        InventoryUsage(1, reserved=2),
        InventoryUsage(1, allocation_ratio=-0.5),
    ):
        assert "exceed the capacity" in refusal(
            claims({"host": {"VCPU": 1}}), {CPU: inventory}
        )


@pytest.mark.parametrize("ratio", [3.4e38, -3.4e38])
def test_the_largest_ratios_are_numbers_like_others(ratio: float) -> None:
    inventories = {CPU: InventoryUsage(0x7FFFFFFF, allocation_ratio=ratio)}
    wanted = claims({"host": {"VCPU": 0x7FFFFFFF}})
    if ratio > 0:
        check_room(wanted, inventories, {})
    else:
        assert "exceed the capacity" in refusal(wanted, inventories)


def test_a_provider_without_any_class_of_the_request_comes_first() -> None:
    wanted = claims(
        {"host": {"VCPU": 1000}}, {"other": {"DISK_GB": 1}}, {"third": {"VCPU": 1}}
    )
    assert refusal(wanted, {CPU: InventoryUsage(1)}) == (
        "Unable to allocate inventory: Inventory for 'VCPU, DISK_GB' on resource "
        "provider 'other, third' invalid."
    )

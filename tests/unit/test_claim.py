"""Whether there is room for what consumers claim."""

import pytest

from placement import errors
from placement.model.allocation import Claim, Place
from placement.model.consumer import WantedConsumer
from placement.model.inventory import InventoryUsage
from placement.objects.replacing import check_room

SOMEBODY = WantedConsumer("somebody", "project", "user")
CPU, DISK = ("host", "VCPU"), ("host", "DISK_GB")


def claims(*amounts: dict[str, dict[str, int]]) -> list[Claim]:
    return [Claim(SOMEBODY, each) for each in amounts]


def refusal(
    wanted: list[Claim],
    inventories: dict[Place, InventoryUsage],
    freed: dict[Place, int] | None = None,
) -> str:
    with pytest.raises(errors.Conflict) as caught:
        check_room(wanted, inventories, freed or {})
    return str(caught.value)


def test_what_fits_is_accepted() -> None:
    check_room(claims({"host": {"VCPU": 4}}), {CPU: InventoryUsage(4)}, {})


def test_what_others_use_counts() -> None:
    inventories = {CPU: InventoryUsage(4, used=1)}
    check_room(claims({"host": {"VCPU": 3}}), inventories, {})
    assert "exceed the capacity" in refusal(claims({"host": {"VCPU": 4}}), inventories)


def test_what_is_given_back_does_not_count() -> None:
    check_room(
        claims({"host": {"VCPU": 4}}), {CPU: InventoryUsage(4, used=4)}, {CPU: 4}
    )


def test_claims_of_one_request_count_together() -> None:
    one = {"host": {"VCPU": 1}}
    check_room(claims(one, one), {CPU: InventoryUsage(2)}, {})
    assert "exceed the capacity" in refusal(
        claims(one, one, one), {CPU: InventoryUsage(2)}
    )


def test_constraints_are_not_about_sums() -> None:
    one = {"host": {"VCPU": 2}}
    check_room(claims(one, one), {CPU: InventoryUsage(10, max_unit=2)}, {})


def test_the_product_of_total_and_ratio_is_not_rounded() -> None:
    inventories = {CPU: InventoryUsage(100, allocation_ratio=0.57)}
    check_room(claims({"host": {"VCPU": 56}}), inventories, {})
    assert "exceed the capacity" in refusal(claims({"host": {"VCPU": 57}}), inventories)


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


@pytest.mark.parametrize(("amount", "fits"), [(7, True), (6, True), (8, False)])
def test_what_is_overcommitted_may_stay_so_and_not_get_worse(
    amount: int, fits: bool
) -> None:
    """Two consumers have 7 each of an inventory that has shrunk to 10."""
    inventories, wanted = (
        {CPU: InventoryUsage(10, used=14)},
        claims({"host": {"VCPU": amount}}),
    )
    if fits:
        check_room(wanted, inventories, {CPU: 7})
    else:
        assert "exceed the capacity" in refusal(wanted, inventories, {CPU: 7})


def test_no_other_consumer_gets_what_is_overcommitted() -> None:
    inventories = {CPU: InventoryUsage(10, used=14)}
    assert "exceed the capacity" in refusal(claims({"host": {"VCPU": 1}}), inventories)


def test_overcommitment_is_handed_over_but_not_multiplied() -> None:
    inventories, seven = {CPU: InventoryUsage(10, used=14)}, {"host": {"VCPU": 7}}
    check_room(claims(seven), inventories, {CPU: 7})
    assert "exceed the capacity" in refusal(claims(seven, seven), inventories, {CPU: 7})


def test_overcommitment_excuses_no_constraint() -> None:
    inventories = {CPU: InventoryUsage(10, max_unit=5, used=14)}
    reason = refusal(claims({"host": {"VCPU": 7}}), inventories, {CPU: 7})
    assert "violate inventory constraints" in reason


def test_constraints_are_reported_before_capacity() -> None:
    inventories = {CPU: InventoryUsage(10, max_unit=5)}
    reason = refusal(claims({"host": {"VCPU": 1000}}), inventories)
    assert reason == (
        "Unable to allocate inventory: Unable to create allocation for 'VCPU' on "
        "resource provider 'host'. The requested amount would violate inventory "
        "constraints."
    )


def test_the_first_item_that_does_not_fit_is_reported() -> None:
    inventories = {CPU: InventoryUsage(1), DISK: InventoryUsage(1)}
    wanted = claims({"host": {"DISK_GB": 1}}, {"host": {"DISK_GB": 1, "VCPU": 5}})
    assert "'DISK_GB'" in refusal(wanted, inventories)


def test_a_provider_without_any_class_of_the_request_comes_first() -> None:
    wanted = claims(
        {"host": {"VCPU": 1000}}, {"other": {"DISK_GB": 1}}, {"third": {"VCPU": 1}}
    )
    assert refusal(wanted, {CPU: InventoryUsage(1)}) == (
        "Unable to allocate inventory: Inventory for 'VCPU, DISK_GB' on resource "
        "provider 'other, third' invalid."
    )


def test_an_inventory_that_only_one_item_lacks_comes_in_its_turn() -> None:
    inventories = {CPU: InventoryUsage(10)}
    assert refusal(claims({"host": {"VCPU": 1, "DISK_GB": 1}}), inventories) == (
        "Unable to allocate inventory: Inventory for 'DISK_GB' on resource provider "
        "'host' invalid."
    )
    assert "'VCPU'" in refusal(
        claims({"host": {"VCPU": 11, "DISK_GB": 1}}), inventories
    )

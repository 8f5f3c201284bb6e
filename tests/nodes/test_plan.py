"""The steps that make a provider match its node."""

from typing import Any

import pytest

from placement_clients.record import Inventory
from placement_nodes.sync import plan

UUID = "2fd2f3a6-20c2-4c5b-94a7-5a7f2f0c2a11"
FREE: dict[str, Any] = {
    "uuid": UUID,
    "resource_class": "baremetal.gold",
    "maintenance": False,
    "power_state": "power off",
    "provision_state": "available",
    "instance_uuid": None,
    "traits": ["CUSTOM_A"],
}


@pytest.mark.parametrize(
    ("resource_class", "name"),
    [
        ("baremetal.gold", "CUSTOM_BAREMETAL_GOLD"),
        ("bar-metal  gold!", "CUSTOM_BAR_METAL_GOLD_"),
        ("GOLD", "CUSTOM_GOLD"),
        ("a__b", "CUSTOM_A_B"),
        ("größe", "CUSTOM_GR_E"),
    ],
)
def test_a_class_gets_a_name_that_placement_accepts(
    resource_class: str, name: str
) -> None:
    assert plan.class_name(resource_class) == name


@pytest.mark.parametrize(
    ("change", "reserved"),
    [
        ({}, 0),
        ({"power_state": "power on"}, 0),
        ({"maintenance": True}, 1),
        ({"power_state": None}, 1),
        ({"power_state": "error"}, 1),
        ({"provision_state": "enroll"}, 1),
        ({"provision_state": "manageable"}, 1),
        ({"provision_state": "active"}, 1),
        ({"instance_uuid": UUID}, 1),
    ],
)
def test_a_node_that_cannot_be_allocated_is_reserved(
    change: dict[str, Any], reserved: int
) -> None:
    want = plan.wanted_of({**FREE, **change})
    assert want is not None
    assert want.reserved == reserved
    assert want.inventories == {
        "CUSTOM_BAREMETAL_GOLD": Inventory(
            total=1,
            reserved=reserved,
            min_unit=1,
            max_unit=1,
            step_size=1,
            allocation_ratio=1.0,
        )
    }

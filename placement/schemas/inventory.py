"""Inventories on the wire."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from placement import errors
from placement.model.inventory import FIELDS, LARGEST_AMOUNT, Inventory
from placement.model.resource_class import UNKNOWN_CLASS
from placement.model.resource_provider import Belongings
from placement.schemas.resource_class import RESOURCE_CLASS_PATTERN
from placement_foundation.http.schema import (
    INTEGER,
    Json,
    Schema,
    View,
    closed_object,
    described,
    extend,
    keyed,
    some_of,
)
from placement_foundation.http.version import Version

# The largest that every database can store; MariaDB has single precision.
LARGEST_RATIO = 3.40282e38

AMOUNT = {"type": "integer", "minimum": 1, "maximum": LARGEST_AMOUNT}

AMOUNTS: Mapping[str, Json] = {
    "total": AMOUNT,
    "reserved": {**AMOUNT, "minimum": 0},
    "min_unit": AMOUNT,
    "max_unit": AMOUNT,
    "step_size": AMOUNT,
    "allocation_ratio": {
        "type": "number",
        "minimum": -LARGEST_RATIO,
        "maximum": LARGEST_RATIO,
    },
}
# An inventory, keyed by its class or next to it. The generation in it counts only
# when exactly one inventory is changed.
PROPERTIES = {"resource_provider_generation": INTEGER, **AMOUNTS}
RECORD = some_of("total", **PROPERTIES)

# All inventories of a provider. Any class name passes here; it is looked up later.
INVENTORIES = closed_object(
    resource_provider_generation={"type": "integer"},
    inventories={
        "type": "object",
        "patternProperties": {RESOURCE_CLASS_PATTERN: RECORD},
    },
)

POST_INVENTORY = Schema(
    extend(
        RECORD,
        properties={
            "resource_class": {"type": "string", "pattern": RESOURCE_CLASS_PATTERN}
        },
        required=("resource_class",),
    )
)
PUT_INVENTORY = Schema(extend(RECORD, required=("resource_provider_generation",)))
PUT_INVENTORIES = Schema(INVENTORIES)


def parse_inventory(record: Json) -> Inventory:
    """Return an inventory; fields that are left out have their defaults."""
    return Inventory(**parse_fields(record))


def parse_fields(record: Json) -> dict[str, Any]:
    """Return the fields of an inventory that are given."""
    fields = {name: record[name] for name in FIELDS if name in record}
    if "allocation_ratio" in fields:
        fields["allocation_ratio"] = float(fields["allocation_ratio"])
    return fields


def parse_inventories(records: Mapping[str, Json]) -> dict[str, Inventory]:
    """Return the inventories whose keys are names that a class can have.

    Nothing has checked the others.
    """
    return {
        name: parse_inventory(record)
        for name, record in records.items()
        if _may_be_class(name)
    }


def check_class_names(names: Iterable[str]) -> None:
    """Check that names are such as a class can have.

    :raises NotFound: one is not
    """
    for name in names:
        if not _may_be_class(name):
            raise errors.NotFound(UNKNOWN_CLASS.format(name=name))


def _may_be_class(name: str) -> bool:
    return re.fullmatch(RESOURCE_CLASS_PATTERN, name) is not None


def path(provider_uuid: str, class_name: str) -> str:
    """Return the path of an inventory."""
    return f"/resource_providers/{provider_uuid}/inventories/{class_name}"


def describe_record() -> dict[str, Json]:
    """Describe an inventory, whose generation is given elsewhere."""
    kinds = {name: {"type": AMOUNTS[name]["type"]} for name in FIELDS}
    return closed_object(**kinds)


def _describe_inventory(version: Version) -> Json:
    generation = {"resource_provider_generation": INTEGER}
    return extend(describe_record(), properties=generation, required=tuple(generation))


@described(_describe_inventory)
def render_inventory(value: Belongings[Inventory], view: View) -> Json:
    """Render one inventory."""
    return {
        **render_record(value.parts),
        "resource_provider_generation": value.generation,
    }


@described(
    closed_object(
        resource_provider_generation=INTEGER, inventories=keyed(describe_record())
    )
)
def render_inventories(value: Belongings[Mapping[str, Inventory]], view: View) -> Json:
    """Render all inventories of a provider."""
    return {
        "resource_provider_generation": value.generation,
        "inventories": {
            name: render_record(inventory) for name, inventory in value.parts.items()
        },
    }


def render_record(inventory: Inventory) -> Json:
    """Render an inventory, whose generation is given elsewhere."""
    return {name: getattr(inventory, name) for name in FIELDS}

"""Inventories on the wire."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from placement import errors
from placement.model.inventory import FIELDS, LARGEST_AMOUNT, Inventory
from placement.model.resource_class import UNKNOWN_CLASS
from placement.schemas.record import GENERATION, Item, record
from placement.schemas.resource_class import RESOURCE_CLASS_PATTERN
from placement_foundation.http.schema import (
    INTEGER,
    Json,
    Schema,
    closed_object,
    extend,
    keyed,
    some_of,
)

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


def parse_inventory(document: Json) -> Inventory:
    """Return an inventory; fields that are left out have their defaults."""
    return Inventory(**parse_fields(document))


def parse_fields(document: Json) -> dict[str, Any]:
    """Return the fields of an inventory that are given."""
    fields = {name: document[name] for name in FIELDS if name in document}
    if "allocation_ratio" in fields:
        fields["allocation_ratio"] = float(fields["allocation_ratio"])
    return fields


def parse_inventories(records: Mapping[str, Json]) -> dict[str, Inventory]:
    """Return the inventories whose keys are names that a class can have.

    Nothing has checked the others.
    """
    return {
        name: parse_inventory(document)
        for name, document in records.items()
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


# An inventory, whose generation is given elsewhere.
KINDS = {name: {"type": AMOUNTS[name]["type"]} for name in FIELDS}
SHOWN = closed_object(**KINDS)


def render_record(inventory: Inventory) -> Json:
    """Render an inventory, whose generation is given elsewhere."""
    return {name: getattr(inventory, name) for name in FIELDS}


def render_records(inventories: Mapping[str, Inventory]) -> Json:
    """Render inventories by resource class."""
    return {name: render_record(each) for name, each in inventories.items()}


render_inventory = record(
    **{name: Item(kind, f"parts.{name}") for name, kind in KINDS.items()},
    resource_provider_generation=GENERATION,
)
render_inventories = record(
    resource_provider_generation=GENERATION,
    inventories=Item(keyed(SHOWN), lambda value: render_records(value.parts)),
)

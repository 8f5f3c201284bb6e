"""Every schema of every service is itself right."""

import gc
import importlib
import pkgutil

import jsonschema
import pytest

import placement
import placement_foundation
import placement_nodes
import placement_reservations
from placement_foundation.http.schema import Schema, Validator

PACKAGES = (placement, placement_foundation, placement_nodes, placement_reservations)


def test_every_schema_is_right() -> None:
    # Programs need not check that whenever they start.
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".schemas" in module.name or module.name.endswith(
                (".routes", "openapi")
            ):
                importlib.import_module(module.name)
    schemas = [each for each in gc.get_objects() if isinstance(each, Schema)]
    assert len(schemas) > 90
    for schema in schemas:
        Validator.check_schema(schema.document)


def test_a_wrong_schema_is_noticed() -> None:
    wrong = Schema({"type": "text"})
    with pytest.raises(jsonschema.SchemaError, match="text"):
        Validator.check_schema(wrong.document)

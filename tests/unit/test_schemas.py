"""Every schema of every service is itself right."""

import gc
import importlib
import re
from pathlib import Path

import jsonschema
import pytest

import placement
import placement_foundation
import placement_nodes
import placement_reservations
from placement_foundation.http.schema import Schema, Validator

PACKAGES = (placement, placement_foundation, placement_nodes, placement_reservations)


def modules_with_schemas() -> list[str]:
    """Return the names of the modules that make one."""
    names = []
    for package in PACKAGES:
        (root,) = package.__path__
        for path in Path(root).rglob("*.py"):
            if re.search(r"\bSchema\(", path.read_text()):
                module = path.relative_to(Path(root).parent).with_suffix("")
                names.append(".".join(module.parts))
    return names


def test_every_schema_is_right() -> None:
    # Programs need not check that whenever they start.
    names = modules_with_schemas()
    assert len(names) > 20
    for name in names:
        importlib.import_module(name)
    # A service that has started in this process has hidden them from the collector.
    gc.unfreeze()
    schemas = [each for each in gc.get_objects() if isinstance(each, Schema)]
    assert len(schemas) >= len(names)
    for schema in schemas:
        Validator.check_schema(schema.document)


def test_a_wrong_schema_is_noticed() -> None:
    with pytest.raises(jsonschema.SchemaError, match="text"):
        Validator.check_schema({"type": "text"})

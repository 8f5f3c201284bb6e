"""All schemas of all services."""

import gc
import importlib
import re
from pathlib import Path

import placement
import placement_foundation
import placement_nodes
import placement_reservations
from placement_foundation.http.schema import Schema

PACKAGES = (placement, placement_foundation, placement_nodes, placement_reservations)


def modules() -> list[str]:
    """Return the names of the modules that make a schema."""
    names = []
    for package in PACKAGES:
        (root,) = package.__path__
        for path in sorted(Path(root).rglob("*.py")):
            if re.search(r"\bSchema\(|string\.parser\(", path.read_text()):
                module = path.relative_to(Path(root).parent).with_suffix("")
                names.append(".".join(module.parts))
    return names


def every() -> list[Schema]:
    """Return all schemas that these modules have made."""
    for name in modules():
        importlib.import_module(name)
    found = [each for each in gc.get_objects() if isinstance(each, Schema)]
    return sorted(found, key=lambda schema: repr(schema.document))

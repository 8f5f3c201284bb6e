"""Bodies of requests that change a state of a node, and what a validation finds."""

from placement_consumers.nodes.objects import provision
from placement_consumers.nodes.objects.node import Node
from placement_consumers.nodes.schemas.document import Body
from placement_foundation.schema import Json, View

# What a configuration drive has is of no use to a node without hardware.
PROVISION = Body(
    {
        "type": "object",
        "properties": {
            "target": {"type": "string"},
            "configdrive": {"type": ["string", "object", "null"]},
        },
        "required": ["target"],
        "additionalProperties": False,
    }
)
POWER = Body(
    {
        "type": "object",
        "properties": {
            "target": {"enum": list(provision.POWER)},
            "timeout": {"type": ["integer", "null"], "minimum": 1},
        },
        "required": ["target"],
        "additionalProperties": False,
    }
)
MAINTENANCE = Body(
    {
        "type": ["object", "null"],
        "properties": {"reason": {"type": ["string", "null"]}},
        "additionalProperties": False,
    }
)
# Interfaces that are validated: without hardware, one of them has what may be wrong.
VALIDATED = (
    "boot",
    "console",
    "deploy",
    "inspect",
    "management",
    "network",
    "power",
    "raid",
    "storage",
)


def render_validation(node: Node, view: View) -> Json:
    """Render what is wrong with each interface of a node."""
    faults = {"deploy": provision.instance_fault(node)}
    return {
        kind: {"result": faults.get(kind) is None, "reason": faults.get(kind) or ""}
        for kind in VALIDATED
    }

"""Bodies of requests that change a state of a node, and the result of a validation."""

from placement_foundation.http.schema import Json, View
from placement_nodes.objects import provision
from placement_nodes.objects.node import Node
from placement_nodes.schemas.document import Body

# Without hardware, the content of a configuration drive has no effect.
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
# The validated interfaces: without hardware, only one of them can have a fault.
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
    """Render the faults of each interface of a node."""
    faults = {"deploy": provision.instance_fault(node)}
    return {
        kind: {"result": faults.get(kind) is None, "reason": faults.get(kind) or ""}
        for kind in VALIDATED
    }

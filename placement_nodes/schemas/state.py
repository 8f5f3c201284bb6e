"""Bodies of requests that change a state of a node, and the result of a validation."""

from placement_foundation.http.schema import TEXT, TEXT_OR_NULL, Json, View, some_of
from placement_nodes.objects import provision
from placement_nodes.objects.node import Node
from placement_nodes.schemas import field
from placement_nodes.schemas.document import Body

# Without hardware, the content of a configuration drive has no effect.
CONFIGDRIVE = {"type": ["string", "object", "null"]}
PROVISION = Body(some_of("target", target=TEXT, configdrive=CONFIGDRIVE))
TIMEOUT = {"type": ["integer", "null"], "minimum": 1}
POWER = Body(some_of("target", target={"enum": list(provision.POWER)}, timeout=TIMEOUT))
MAINTENANCE = Body({**some_of(reason=TEXT_OR_NULL), "type": ["object", "null"]})
# The validated interfaces: without hardware, only one of them can have a fault.
VALIDATED = [kind for kind in field.INTERFACES if kind != "vendor"]


def render_validation(node: Node, view: View) -> Json:
    """Render the faults of each interface of a node."""
    faults = {"deploy": provision.instance_fault(node)}
    return {
        kind: {"result": faults.get(kind) is None, "reason": faults.get(kind) or ""}
        for kind in VALIDATED
    }

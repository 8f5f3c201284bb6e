"""What is open to all: what the service speaks, and whether it is well."""

from placement_consumers.nodes.conf import Settings
from placement_consumers.nodes.objects import node
from placement_foundation.operation import Call, Reply


def show(call: Call[None, Settings]) -> Reply:
    """Answer with what there is; it depends on nothing that is stored."""
    return Reply()


def check_health(call: Call[None, Settings]) -> Reply:
    """Answer if the database answers; if it does not, that is the answer."""
    node.probe(call.session)
    return Reply()

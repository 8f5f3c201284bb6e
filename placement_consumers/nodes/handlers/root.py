"""Documents by which clients find out what the service speaks, for everybody."""

from placement_consumers.nodes.conf import Settings
from placement_foundation.operation import Call, Reply


def show(call: Call[None, Settings]) -> Reply:
    """Answer with what there is; it depends on nothing that is stored."""
    return Reply()

"""The root of the ledger API, which stands beside that of Placement."""

from placement.operation import Call
from placement_foundation.operation import Reply


def show_index(call: Call[None]) -> Reply:
    """Answer with what there is below."""
    return Reply()

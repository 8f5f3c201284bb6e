"""The root of the ledger API, which is separate from the Placement API."""

from placement.operation import Call
from placement_foundation.http.operation import Reply


def show_index(call: Call[None]) -> Reply:
    """List the resources of the ledger API."""
    return Reply()

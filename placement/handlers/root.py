"""The root document: the versions of the API."""

from placement.operation import Call
from placement_foundation.clock import utc_now
from placement_foundation.http.operation import Reply


def show_versions(call: Call[None]) -> Reply:
    """Show the versions of the API, to any caller."""
    return Reply(modified=utc_now())

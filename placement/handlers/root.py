"""The root document: the versions of the API."""

from oslo_utils.timeutils import utcnow

from placement.operation import Call
from placement_foundation.http.operation import Reply


def show_versions(call: Call[None]) -> Reply:
    """Show the versions of the API, to any caller."""
    return Reply(modified=utcnow())

"""Drivers, which operate nodes."""

from placement_foundation.http.operation import Call, Reply
from placement_nodes.conf import Settings


def list_drivers(call: Call[None, Settings]) -> Reply:
    """List the drivers that are configured."""
    return Reply(call.context.drivers)

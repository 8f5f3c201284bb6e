"""Drivers, which operate nodes."""

from placement_consumers.nodes.conf import Settings
from placement_foundation.operation import Call, Reply


def list_drivers(call: Call[None, Settings]) -> Reply:
    """List the drivers that are configured."""
    return Reply(call.settings.drivers)

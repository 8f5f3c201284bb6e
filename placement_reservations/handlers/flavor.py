"""Flavors of reservations, if no other service shows them."""

from placement_foundation.http.operation import Connection, Reply, reading
from placement_reservations.handlers.call import Call
from placement_reservations.store import flavor as flavors


def _project(call: Call[None]) -> str | None:
    if call.may("reservation:flavors:list_all"):
        return None
    return (call.asking and call.asking.project_id) or ""


@reading
def list_flavors(call: Call[None], connection: Connection) -> Reply:
    """List flavors: administrators see all, others those that they may use."""
    return Reply(flavors.list_flavors(connection, _project(call)))


@reading
def show_flavor(call: Call[None], connection: Connection) -> Reply:
    """Show a flavor."""
    shown = flavors.get(connection, call.path["flavor_id"], _project(call))
    return Reply(shown)

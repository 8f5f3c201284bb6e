"""Flavors of reservations, if no other service shows them."""

from placement_foundation.http.operation import Connection, Reply, reading
from placement_reservations.handlers.call import Call, project_of
from placement_reservations.store import flavor as flavors

ALL = "reservation:flavors:list_all"


@reading
def list_flavors(call: Call[None], connection: Connection) -> Reply:
    """List flavors: administrators see all, others those that they may use."""
    return Reply(flavors.list_flavors(connection, project_of(call, ALL)))


@reading
def show_flavor(call: Call[None], connection: Connection) -> Reply:
    """Show a flavor."""
    project = project_of(call, ALL)
    return Reply(flavors.get(connection, call.path["flavor_id"], project))

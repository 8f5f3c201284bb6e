"""What is about the service itself: its versions, its health and its drivers."""

from placement_foundation.http.operation import Call, Connection, Reply, reading
from placement_nodes.conf import Settings
from placement_nodes.objects import node


def show(call: Call[None, Settings]) -> Reply:
    """Answer with a document that depends on nothing stored."""
    return Reply()


@reading
def check_health(call: Call[None, Settings], connection: Connection) -> Reply:
    """Answer if the database answers; otherwise fail as any request does."""
    node.probe(connection)
    return Reply()


def list_drivers(call: Call[None, Settings]) -> Reply:
    """List the drivers that are configured."""
    return Reply(call.context.drivers)

"""Nodes: enrolled, listed, shown, changed, removed."""

from oslo_utils import uuidutils

from placement_foundation import errors
from placement_foundation.http.operation import (
    Call,
    Connection,
    Reply,
    reading,
    writing,
)
from placement_nodes.conf import Settings
from placement_nodes.objects import node as ledger
from placement_nodes.objects import node_filter, provision
from placement_nodes.schemas import document, patch
from placement_nodes.schemas import node as wire


@reading
def list_nodes(call: Call[None, Settings], connection: Connection) -> Reply:
    """List the nodes of a page."""
    listing = call.query
    nodes, has_more = node_filter.list_page(connection, listing.filters, listing.page)
    return Reply(wire.NodeList(listing, nodes, has_more))


@writing
def create_node(call: Call[None, Settings], connection: Connection) -> Reply:
    """Enrol a node.

    :raises BadRequest: the name or the driver is not valid for a node
    :raises Conflict: another node has its UUID, its name or its instance
    """
    columns = wire.parse_columns(call.body, "create")
    _check_driver(columns["driver"], call.context)
    document.check_size(call.body)
    uuid = ledger.canonical_uuid(call.body.get("uuid") or uuidutils.generate_uuid())
    ledger.create(connection, {"uuid": uuid, **columns})
    node = ledger.get_by_ident(connection, uuid, by_name=False)
    return Reply(node, location=wire.path_of(uuid))


@reading
def show_node(call: Call[None, Settings], connection: Connection) -> Reply:
    """Show a node, or some fields of it."""
    return Reply((call.load(connection), call.query))


@writing
def update_node(call: Call[None, Settings], connection: Connection) -> Reply:
    """Apply a patch to a node.

    :raises BadRequest: the patch does not apply, or its result is not a valid node
    :raises Conflict: another node has the name or the instance, or the node has another
        instance
    """
    node = ledger.get_locked(connection, call.load(connection))
    before = wire.changeable(node)
    after = patch.apply(before, call.body)
    wire.check(after)
    columns = wire.parse_columns(after, "update")
    if columns["driver"] != node.driver:
        _check_driver(columns["driver"], call.context)
    changes = {
        name: value for name, value in columns.items() if value != getattr(node, name)
    }
    if changes.get("maintenance") is False:
        changes["maintenance_reason"] = None
    ledger.update(connection, node, changes)
    return Reply(ledger.get_by_ident(connection, node.uuid, by_name=False))


def _check_driver(driver: str, settings: Settings) -> None:
    if driver not in settings.drivers:
        drivers = ", ".join(settings.drivers)
        raise errors.BadRequest(f"There is no driver {driver!r}; there are: {drivers}")


@writing
def delete_node(call: Call[None, Settings], connection: Connection) -> Reply:
    """Remove a node, and its traits.

    :raises Conflict: it is in use, and not in maintenance
    """
    node = ledger.get_locked(connection, call.load(connection))
    provision.check_removable(node)
    ledger.delete(connection, node)
    return Reply()


@reading
def validate_node(call: Call[None, Settings], connection: Connection) -> Reply:
    """Return whether a node could be used as it is."""
    return Reply(call.load(connection))

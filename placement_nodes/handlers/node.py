"""Nodes: enrolled, listed, shown, changed, removed; their states and their traits."""

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
from placement_nodes.objects import trait as traits
from placement_nodes.objects.node import Node
from placement_nodes.schemas import document, patch
from placement_nodes.schemas import node as wire


@reading
def list_nodes(call: Call[None, Settings], connection: Connection) -> Reply:
    """List the nodes of a page."""
    listing = call.query
    nodes, has_more = node_filter.list_page(connection, listing.filters, listing.page)
    return Reply((listing, nodes, has_more))


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


def _locked(call: Call[None, Settings], connection: Connection) -> Node:
    return ledger.get_locked(connection, call.load(connection))


@reading
def load_node(call: Call[None, Settings], connection: Connection) -> Reply:
    """Return a node, of which the reply shows the states, or the faults."""
    return Reply(call.load(connection))


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
    node = _locked(call, connection)
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
    node = _locked(call, connection)
    provision.check_removable(node)
    ledger.delete(connection, node)
    return Reply()


@writing
def provision_node(call: Call[None, Settings], connection: Connection) -> Reply:
    """Bring a node to the requested provision state, immediately.

    :raises BadRequest: no such transition exists from its state, or its instance
        requires traits that it does not have
    """
    node = _locked(call, connection)
    ledger.update(connection, node, provision.provision(node, call.body["target"]))
    return _accepted(call)


@writing
def switch_power(call: Call[None, Settings], connection: Connection) -> Reply:
    """Switch the power of a node."""
    changes = {"power_state": provision.POWER[call.body["target"]]}
    ledger.update(connection, _locked(call, connection), changes)
    return _accepted(call)


def _accepted(call: Call[None, Settings]) -> Reply:
    return Reply(location=wire.path_of(call.path["ident"], "states"))


@writing
def set_maintenance(call: Call[None, Settings], connection: Connection) -> Reply:
    """Put a node into maintenance, with a reason if one is given."""
    reason = (call.body or {}).get("reason")
    changes = {"maintenance": True, "maintenance_reason": reason}
    ledger.update(connection, _locked(call, connection), changes)
    return Reply()


@writing
def clear_maintenance(call: Call[None, Settings], connection: Connection) -> Reply:
    """End the maintenance of a node."""
    changes = {"maintenance": False, "maintenance_reason": None}
    ledger.update(connection, _locked(call, connection), changes)
    return Reply()


@reading
def list_traits(call: Call[None, Settings], connection: Connection) -> Reply:
    """List the traits of a node."""
    return Reply(call.load(connection).traits)


@writing
def replace_traits(call: Call[None, Settings], connection: Connection) -> Reply:
    """Replace the traits of a node.

    :raises BadRequest: one of them is not a valid trait, or there are too many
    """
    node = _locked(call, connection)
    names = sorted(set(call.body["traits"]))
    traits.check_names(names, "body")
    traits.replace_all(connection, node, names)
    return Reply(names)


@writing
def delete_traits(call: Call[None, Settings], connection: Connection) -> Reply:
    """Remove all traits of a node."""
    traits.replace_all(connection, _locked(call, connection), ())
    return Reply()


@writing
def add_trait(call: Call[None, Settings], connection: Connection) -> Reply:
    """Add a trait to a node, unless it has it already.

    :raises BadRequest: it is not a valid trait, or one too many
    """
    node = _locked(call, connection)
    name = call.path["trait"]
    traits.check_names([name], "trait")
    traits.add(connection, node, name)
    return Reply(location=wire.path_of(call.path["ident"], "traits", name))


@writing
def delete_trait(call: Call[None, Settings], connection: Connection) -> Reply:
    """Remove a trait of a node.

    :raises NotFound: the node does not have it
    """
    traits.remove(connection, _locked(call, connection), call.path["trait"])
    return Reply()

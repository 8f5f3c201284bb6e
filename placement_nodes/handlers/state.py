"""States of a node: provisioning, power, maintenance."""

from collections.abc import Mapping
from typing import Any

from placement_foundation.http.operation import (
    Call,
    Connection,
    Reply,
    reading,
    writing,
)
from placement_nodes.conf import Settings
from placement_nodes.objects import node as ledger
from placement_nodes.objects import provision
from placement_nodes.schemas import node as wire


@reading
def show_states(call: Call[None, Settings], connection: Connection) -> Reply:
    """Show the states of a node."""
    return Reply(call.load(connection))


@writing
def provision_node(call: Call[None, Settings], connection: Connection) -> Reply:
    """Bring a node to the requested provision state, immediately.

    :raises BadRequest: no such transition exists from its state, or its instance
        requires traits that it does not have
    """
    node = ledger.get_locked(connection, call.load(connection))
    ledger.update(connection, node, provision.provision(node, call.body["target"]))
    return _accepted(call)


@writing
def switch_power(call: Call[None, Settings], connection: Connection) -> Reply:
    """Switch the power of a node."""
    changes = {"power_state": provision.POWER[call.body["target"]]}
    _change(call, connection, changes)
    return _accepted(call)


def _accepted(call: Call[None, Settings]) -> Reply:
    return Reply(location=wire.path_of(call.path["ident"], "states"))


@writing
def set_maintenance(call: Call[None, Settings], connection: Connection) -> Reply:
    """Put a node into maintenance, with a reason if one is given."""
    reason = (call.body or {}).get("reason")
    changes = {"maintenance": True, "maintenance_reason": reason}
    _change(call, connection, changes)
    return Reply()


@writing
def clear_maintenance(call: Call[None, Settings], connection: Connection) -> Reply:
    """End the maintenance of a node."""
    changes = {"maintenance": False, "maintenance_reason": None}
    _change(call, connection, changes)
    return Reply()


def _change(
    call: Call[None, Settings], connection: Connection, changes: Mapping[str, Any]
) -> None:
    node = ledger.get_locked(connection, call.load(connection))
    ledger.update(connection, node, changes)

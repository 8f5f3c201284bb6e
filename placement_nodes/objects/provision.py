"""States of a node, and the transitions between them.

There is no hardware behind it, so each change is immediate.
"""

from collections.abc import Mapping
from typing import Any

from oslo_utils.timeutils import utcnow

from placement_foundation import errors
from placement_nodes.objects.node import ENROLL, Node

MANAGEABLE, AVAILABLE, ACTIVE = "manageable", "available", "active"
POWER_ON, POWER_OFF, REBOOTING = "power on", "power off", "rebooting"

# The actions that each state allows, and the state after each.
TRANSITIONS = {
    (ENROLL, "manage"): MANAGEABLE,
    (AVAILABLE, "manage"): MANAGEABLE,
    (MANAGEABLE, "provide"): AVAILABLE,
    (AVAILABLE, "active"): ACTIVE,
    (ACTIVE, "deleted"): AVAILABLE,
}
# The requests to change the power, and the state after each.
POWER = {POWER_ON: POWER_ON, POWER_OFF: POWER_OFF, REBOOTING: POWER_ON}
# Nodes in these states can be removed, others only in maintenance.
REMOVABLE = {ENROLL, MANAGEABLE, AVAILABLE}


def provision(node: Node, target: str) -> dict[str, Any]:
    """Return the changes that bring a node to a requested provision state.

    :raises BadRequest: no such transition exists from its state, or its instance
        requires traits that it does not have
    """
    state = TRANSITIONS.get((node.provision_state, target))
    if state is None:
        raise errors.BadRequest(
            f'The requested action "{target}" can not be performed on node '
            f'"{node.uuid}" while it is in state "{node.provision_state}".'
        )
    fault = state == ACTIVE and instance_fault(node)
    if fault:
        raise errors.BadRequest(
            f"Failed to validate deploy or power info for node {node.uuid}: {fault}"
        )
    return {
        "provision_state": state,
        "provision_updated_at": utcnow(),
        **_consequences(node, target),
    }


def _consequences(node: Node, target: str) -> Mapping[str, Any]:
    if target == "manage" and node.power_state is None:
        return {"power_state": POWER_OFF}
    if target == "active":
        return {"power_state": POWER_ON}
    if target == "deleted":
        return {"power_state": POWER_OFF, "instance_info": {}, "instance_uuid": None}
    return {}


def instance_fault(node: Node) -> str | None:
    """Return why a node cannot be given to its instance; None if it can.

    An instance requires traits in ``instance_info``. The node must have all of them.
    """
    required = node.instance_info.get("traits")
    if required in (None, [], {}, ""):
        return None
    if not isinstance(required, list) or not all(
        isinstance(each, str) for each in required
    ):
        return (
            f"Error parsing traits from Node {node.uuid} instance_info field. A list "
            "of strings is expected."
        )
    missing = sorted(set(required) - set(node.traits))
    if missing:
        return (
            "Cannot specify instance traits that are not also set on the node. Node "
            f"{node.uuid} is missing traits {', '.join(missing)}"
        )
    return None


def check_removable(node: Node) -> None:
    """Check that a node may be removed.

    :raises Conflict: it is in use, and not in maintenance
    """
    if node.provision_state not in REMOVABLE and not node.maintenance:
        raise errors.Conflict(
            f'Can not delete node "{node.uuid}" while it is in provision state '
            f'"{node.provision_state}". Valid provision states to perform deletion '
            f"are: {', '.join(sorted(REMOVABLE))}; or put it into maintenance."
        )

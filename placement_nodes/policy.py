"""Who may do what with nodes: the rules and their defaults."""

from oslo_config import cfg
from oslo_policy import policy

from placement_foundation.http import policy as enforcement
from placement_foundation.http.policy import Enforcer
from placement_nodes.routes import ROUTES

DEFAULT = "rule:admin_or_service_api"

# The rule of each operation, and what it allows.
MEANINGS = {
    "driver:list": "List drivers.",
    "node:list": "List nodes.",
    "node:create": "Enrol a node.",
    "node:show": "Show a node.",
    "node:update": "Change a node.",
    "node:delete": "Remove a node.",
    "node:validate": "Check whether a node could be used as it is.",
    "node:states:show": "Show the states of a node.",
    "node:states:provision": "Bring a node to another provision state.",
    "node:states:power": "Switch the power of a node.",
    "node:maintenance:set": "Put a node into maintenance.",
    "node:maintenance:clear": "End the maintenance of a node.",
    "node:traits:list": "List the traits of a node.",
    "node:traits:set": "Add or replace traits of a node.",
    "node:traits:delete": "Remove traits of a node.",
}


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules with their defaults, base rules first."""
    operations = enforcement.list_operation_rules(
        ROUTES, "baremetal", MEANINGS, DEFAULT
    )
    return [enforcement.ADMIN_OR_SERVICE, *operations]


def make_enforcer(config: cfg.ConfigOpts) -> Enforcer:
    """Return the enforcer of the defaults and the operator's policy files.

    :raises Exception: a policy file cannot be parsed
    """
    return Enforcer(config, list_rules())

"""Who may do what with leases and hosts: the rules and their defaults."""

from oslo_config import cfg
from oslo_policy import policy

from placement_foundation.http import policy as enforcement
from placement_foundation.http.policy import PROJECT_SCOPE, Enforcer
from placement_reservations.routes import ROUTES

SERVICE = "reservation"
ADMIN = "rule:admin_or_service_api"
READER = "rule:admin_or_project_reader_api"
MEMBER = "rule:admin_or_project_member_api"

# What the rules of operations are made of, and rules within operations.
FURTHER_RULES = [
    policy.RuleDefault(name, check, description=meaning, scope_types=PROJECT_SCOPE)
    for name, check, meaning in (
        (
            "admin_or_project_reader_api",
            f"{ADMIN} or (role:reader and project_id:%(project_id)s)",
            "Administrators, services, and readers of the project.",
        ),
        (
            "admin_or_project_member_api",
            f"{ADMIN} or (role:member and project_id:%(project_id)s)",
            "Administrators, services, and members of the project.",
        ),
        ("reservation:leases:list_all", ADMIN, "List the leases of all projects."),
        (
            "reservation:flavors:list_all",
            ADMIN,
            "List and show the flavors of all reservations.",
        ),
        (
            "reservation:hosts:properties:list_private",
            ADMIN,
            "List private properties of hosts.",
        ),
    )
]

# The rule of each operation, and what it allows. Those whose default differs from the
# rest are in EXCEPTIONS.
MEANINGS = {
    "leases:list": "List leases.",
    "leases:list_free": "List the times at which a lease could start.",
    "leases:create": "Create a lease.",
    "leases:show": "Show a lease.",
    "leases:update": "Change a lease.",
    "leases:delete": "End and delete a lease.",
    "hosts:list": "List hosts.",
    "hosts:create": "Make the capacity of a host reservable.",
    "hosts:show": "Show a host.",
    "hosts:update": "Change capabilities of a host.",
    "hosts:delete": "Stop making the capacity of a host reservable.",
    "hosts:allocations:list": "List the promised slots of all hosts.",
    "hosts:allocations:show": "Show the promised slots of a host.",
    "hosts:properties:list": "List the capabilities of hosts.",
    "hosts:properties:update": "Make a capability of hosts private, or public.",
    "flavors:list": "List the flavors of reservations.",
    "flavors:show": "Show the flavor of a reservation.",
}
EXCEPTIONS = {
    "reservation:leases:list": READER,
    "reservation:leases:list_free": READER,
    "reservation:leases:show": READER,
    "reservation:leases:create": MEMBER,
    "reservation:leases:update": MEMBER,
    "reservation:leases:delete": MEMBER,
    "reservation:hosts:properties:list": READER,
    "reservation:flavors:list": READER,
    "reservation:flavors:show": READER,
}


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules with their defaults, base rules first."""
    operations = enforcement.list_operation_rules(
        ROUTES, SERVICE, MEANINGS, ADMIN, EXCEPTIONS
    )
    return [enforcement.ADMIN_OR_SERVICE, *FURTHER_RULES, *operations]


def make_enforcer(config: cfg.ConfigOpts) -> Enforcer:
    """Return the enforcer of the defaults and the operator's policy files.

    :raises Exception: a policy file cannot be parsed
    """
    return Enforcer(config, list_rules())

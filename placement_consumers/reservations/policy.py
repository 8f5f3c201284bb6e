"""Who may do what with leases and hosts: the rules and their defaults."""

from oslo_config import cfg
from oslo_policy import policy

from placement_consumers.reservations.routes import ROUTES
from placement_foundation import policy as enforcement
from placement_foundation.policy import PROJECT_SCOPE, Enforcer

SERVICE = "reservation"
ADMIN = "rule:admin_or_service_api"
READER = "rule:admin_or_project_reader_api"
MEMBER = "rule:admin_or_project_member_api"

BASE_RULES = [
    policy.RuleDefault(
        "admin_or_service_api",
        "role:admin or role:service",
        description="Administrators and services of the cloud.",
        scope_types=PROJECT_SCOPE,
    ),
    policy.RuleDefault(
        "admin_or_project_reader_api",
        "rule:admin_or_service_api or (role:reader and project_id:%(project_id)s)",
        description="Administrators, services, and readers of the project.",
        scope_types=PROJECT_SCOPE,
    ),
    policy.RuleDefault(
        "admin_or_project_member_api",
        "rule:admin_or_service_api or (role:member and project_id:%(project_id)s)",
        description="Administrators, services, and members of the project.",
        scope_types=PROJECT_SCOPE,
    ),
    policy.RuleDefault(
        "reservation:leases:list_all",
        ADMIN,
        description="List the leases of all projects.",
        scope_types=PROJECT_SCOPE,
    ),
    policy.RuleDefault(
        "reservation:flavors:list_all",
        ADMIN,
        description="List and show the flavors of all reservations.",
        scope_types=PROJECT_SCOPE,
    ),
    policy.RuleDefault(
        "reservation:hosts:properties:list_private",
        ADMIN,
        description="List private properties of hosts.",
        scope_types=PROJECT_SCOPE,
    ),
]

# The rule of each operation, and what it lets do. Those with another default than the
# rest are in EXCEPTIONS.
MEANINGS = {
    "leases:list": "List leases.",
    "leases:create": "Make a lease.",
    "leases:show": "Show a lease.",
    "leases:update": "Change a lease.",
    "leases:delete": "End and remove a lease.",
    "hosts:list": "List hosts.",
    "hosts:create": "Let the room of a host be reserved.",
    "hosts:show": "Show a host.",
    "hosts:update": "Change what is said of a host.",
    "hosts:delete": "Let the room of a host not be reserved any more.",
    "hosts:allocations:list": "List the slots that are promised of all hosts.",
    "hosts:allocations:show": "Show the slots that are promised of a host.",
    "hosts:properties:list": "List what is said of hosts.",
    "hosts:properties:update": "Make what is said of hosts private, or not.",
    "flavors:list": "List the flavors of reservations.",
    "flavors:show": "Show the flavor of a reservation.",
}
EXCEPTIONS = {
    "reservation:leases:list": READER,
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
    return [*BASE_RULES, *operations]


def make_enforcer(config: cfg.ConfigOpts) -> Enforcer:
    """Return what decides: the defaults, and what the operator's files say instead.

    :raises Exception: a policy file cannot be parsed
    """
    return enforcement.make_enforcer(config, list_rules())

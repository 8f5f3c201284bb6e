"""Policy: the rules of the service and their defaults."""

from oslo_config import cfg
from oslo_policy import policy

from placement.routes import ROUTES
from placement_foundation.http import policy as enforcement
from placement_foundation.http.policy import PROJECT_SCOPE, Enforcer

LEGACY = policy.DeprecatedRule(
    name="rule:admin_api",
    check_str="role:admin",
    deprecated_reason="Services have their own role now, apart from administrators.",
    deprecated_since="Wallaby",
)

BASE_RULES = [
    policy.RuleDefault(
        "admin_api",
        "role:admin",
        description="Administrators. No other rule refers to this one.",
        scope_types=PROJECT_SCOPE,
    ),
    policy.RuleDefault(
        "service_api",
        "role:service",
        description="Services of the cloud.",
        scope_types=PROJECT_SCOPE,
        deprecated_rule=LEGACY,
    ),
    policy.RuleDefault(
        "admin_or_service_api",
        "role:admin or role:service",
        description="Administrators and services of the cloud.",
        scope_types=PROJECT_SCOPE,
        deprecated_rule=LEGACY,
    ),
    policy.RuleDefault(
        "project_reader_api",
        "role:reader and project_id:%(project_id)s",
        description="Readers of the project that the request is about.",
        deprecated_rule=LEGACY,
    ),
    policy.RuleDefault(
        "admin_or_project_reader_or_service_api",
        "role:admin or rule:project_reader_api or role:service",
        description="Administrators, services, and readers of their own project.",
        scope_types=PROJECT_SCOPE,
        deprecated_rule=LEGACY,
    ),
]

# The rule of each operation, and what it permits. Rules whose default differs from the
# rest are in EXCEPTIONS.
DEFAULT = "rule:admin_or_service_api"
EXCEPTIONS = {
    "placement:usages": "rule:admin_or_project_reader_or_service_api",
    "placement:reshaper:reshape": "rule:service_api",
}
MEANINGS = {
    "resource_providers:list": "List providers.",
    "resource_providers:create": "Create a provider.",
    "resource_providers:show": "Show a provider.",
    "resource_providers:update": "Rename or move a provider.",
    "resource_providers:delete": "Delete a provider.",
    "resource_classes:list": "List resource classes.",
    "resource_classes:create": "Create a resource class.",
    "resource_classes:show": "Show a resource class.",
    "resource_classes:update": "Create, confirm or rename a resource class.",
    "resource_classes:delete": "Delete a resource class.",
    "resource_providers:inventories:list": "List the inventories of a provider.",
    "resource_providers:inventories:create": "Create an inventory of a provider.",
    "resource_providers:inventories:show": "Show an inventory of a provider.",
    "resource_providers:inventories:update": "Replace the inventories of a provider.",
    "resource_providers:inventories:delete": "Delete the inventories of a provider.",
    "resource_providers:aggregates:list": "List the aggregates of a provider.",
    "resource_providers:aggregates:update": "Replace the aggregates of a provider.",
    "resource_providers:usages": "Show the usages of a provider.",
    "usages": "Show the usages of a project.",
    "traits:list": "List traits.",
    "traits:show": "Check whether a trait exists.",
    "traits:update": "Create or confirm a trait.",
    "traits:delete": "Delete a trait.",
    "resource_providers:traits:list": "List the traits of a provider.",
    "resource_providers:traits:update": "Replace the traits of a provider.",
    "resource_providers:traits:delete": "Remove the traits of a provider.",
    "allocations:manage": "Replace the allocations of several consumers.",
    "allocations:list": "List the allocations of a consumer.",
    "allocations:update": "Replace the allocations of a consumer.",
    "allocations:delete": "Delete the allocations of a consumer.",
    "resource_providers:allocations:list": "List the allocations of a provider.",
    "allocation_candidates:list": "List allocation candidates.",
    "ledger:explanation": "Explain why hosts do not serve a request.",
    "ledger:capacity": "Count how many times a request could be claimed.",
    "ledger:what_if": "Show answers as they would be after a change of the cloud.",
    "ledger:fleet": "Show all providers at once.",
    "ledger:placements": "Choose providers for consumers and claim them.",
    "ledger:changes": "Follow what changes.",
    "ledger:history": "List changes with their times and requests.",
    "ledger:apply": "Declare hardware: create, change and remove providers.",
    "ledger:declared": "List what was declared of the hardware.",
    "ledger:names": "List the names of aggregates and projects.",
    "ledger:audits:list": "List what audits of claims have found.",
    "ledger:audits:update": "Record what an audit of claims has found.",
    "ledger:audits:delete": "Forget what an audit of claims has found.",
    "ledger:leases:list": "List until when the allocations of consumers last.",
    "ledger:leases:show": "Show until when the allocations of a consumer last.",
    "ledger:leases:update": "Give the allocations of a consumer an end.",
    "ledger:leases:delete": "Let the allocations of a consumer stay for good.",
    "reshaper:reshape": "Move inventories and their allocations between providers.",
}


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules with their defaults, base rules first."""
    operations = enforcement.list_operation_rules(
        ROUTES, "placement", MEANINGS, DEFAULT, EXCEPTIONS
    )
    return [*BASE_RULES, *operations]


def make_enforcer(config: cfg.ConfigOpts) -> Enforcer:
    """Return the enforcer of the default rules and the operator's overrides.

    :raises Exception: a policy file cannot be used
    """
    return Enforcer(config, list_rules())


def get_enforcer() -> policy.Enforcer:
    """Return the rules for the policy tools."""
    return enforcement.for_tools("placement", list_rules())

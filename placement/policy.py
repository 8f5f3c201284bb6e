"""Who may do what: the rules and their defaults."""

import threading
from collections.abc import Mapping

from oslo_config import cfg
from oslo_policy import policy

from placement import errors
from placement.context import RequestContext

PROJECT_SCOPE = ["project"]

LEGACY = policy.DeprecatedRule(
    name="rule:admin_api",
    check_str="role:admin",
    deprecated_reason="Services have a role of their own, besides administrators.",
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
        description="Readers of the project that the question is about.",
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

# Each operation, in the words of the API: rule, method and path, what it does. Those
# with another default than the rest are in EXCEPTIONS.
DEFAULT = "rule:admin_or_service_api"
EXCEPTIONS = {
    "placement:usages": "rule:admin_or_project_reader_or_service_api",
    "placement:reshaper:reshape": "rule:service_api",
}
OPERATIONS = [
    ("resource_providers:list", "GET", "/resource_providers", "List providers."),
    ("resource_providers:create", "POST", "/resource_providers", "Create a provider."),
    (
        "resource_providers:show",
        "GET",
        "/resource_providers/{uuid}",
        "Show a provider.",
    ),
    (
        "resource_providers:update",
        "PUT",
        "/resource_providers/{uuid}",
        "Rename or move a provider.",
    ),
    (
        "resource_providers:delete",
        "DELETE",
        "/resource_providers/{uuid}",
        "Delete a provider.",
    ),
    ("resource_classes:list", "GET", "/resource_classes", "List resource classes."),
    (
        "resource_classes:create",
        "POST",
        "/resource_classes",
        "Create a resource class.",
    ),
    (
        "resource_classes:show",
        "GET",
        "/resource_classes/{name}",
        "Show a resource class.",
    ),
    (
        "resource_classes:update",
        "PUT",
        "/resource_classes/{name}",
        "Create, confirm or rename a resource class.",
    ),
    (
        "resource_classes:delete",
        "DELETE",
        "/resource_classes/{name}",
        "Delete a resource class.",
    ),
    (
        "resource_providers:inventories:list",
        "GET",
        "/resource_providers/{uuid}/inventories",
        "List the inventories of a provider.",
    ),
    (
        "resource_providers:inventories:create",
        "POST",
        "/resource_providers/{uuid}/inventories",
        "Create an inventory of a provider.",
    ),
    (
        "resource_providers:inventories:show",
        "GET",
        "/resource_providers/{uuid}/inventories/{resource_class}",
        "Show an inventory of a provider.",
    ),
    (
        "resource_providers:inventories:update",
        "PUT",
        "/resource_providers/{uuid}/inventories",
        "Replace the inventories of a provider.",
    ),
    (
        "resource_providers:inventories:update",
        "PUT",
        "/resource_providers/{uuid}/inventories/{resource_class}",
        "Replace an inventory of a provider.",
    ),
    (
        "resource_providers:inventories:delete",
        "DELETE",
        "/resource_providers/{uuid}/inventories",
        "Delete the inventories of a provider.",
    ),
    (
        "resource_providers:inventories:delete",
        "DELETE",
        "/resource_providers/{uuid}/inventories/{resource_class}",
        "Delete an inventory of a provider.",
    ),
    (
        "resource_providers:aggregates:list",
        "GET",
        "/resource_providers/{uuid}/aggregates",
        "List the aggregates of a provider.",
    ),
    (
        "resource_providers:aggregates:update",
        "PUT",
        "/resource_providers/{uuid}/aggregates",
        "Replace the aggregates of a provider.",
    ),
    (
        "resource_providers:usages",
        "GET",
        "/resource_providers/{uuid}/usages",
        "Show what is used of a provider.",
    ),
    ("usages", "GET", "/usages", "Show what a project uses."),
    ("traits:list", "GET", "/traits", "List traits."),
    ("traits:show", "GET", "/traits/{name}", "Tell whether a trait exists."),
    ("traits:update", "PUT", "/traits/{name}", "Create or confirm a trait."),
    ("traits:delete", "DELETE", "/traits/{name}", "Delete a trait."),
    (
        "resource_providers:traits:list",
        "GET",
        "/resource_providers/{uuid}/traits",
        "List the traits of a provider.",
    ),
    (
        "resource_providers:traits:update",
        "PUT",
        "/resource_providers/{uuid}/traits",
        "Replace the traits of a provider.",
    ),
    (
        "resource_providers:traits:delete",
        "DELETE",
        "/resource_providers/{uuid}/traits",
        "Remove the traits of a provider.",
    ),
    (
        "allocations:manage",
        "POST",
        "/allocations",
        "Replace the allocations of several consumers.",
    ),
    (
        "allocations:list",
        "GET",
        "/allocations/{consumer_uuid}",
        "List the allocations of a consumer.",
    ),
    (
        "allocations:update",
        "PUT",
        "/allocations/{consumer_uuid}",
        "Replace the allocations of a consumer.",
    ),
    (
        "allocations:delete",
        "DELETE",
        "/allocations/{consumer_uuid}",
        "Delete the allocations of a consumer.",
    ),
    (
        "resource_providers:allocations:list",
        "GET",
        "/resource_providers/{uuid}/allocations",
        "List the allocations of a provider.",
    ),
    (
        "allocation_candidates:list",
        "GET",
        "/allocation_candidates",
        "List allocation candidates.",
    ),
    (
        "reshaper:reshape",
        "POST",
        "/reshaper",
        "Move inventories and their allocations between providers.",
    ),
]


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules with their defaults, base rules first."""
    described: dict[str, list[tuple[str, str, str]]] = {}
    for rule, method, path, meaning in OPERATIONS:
        described.setdefault(f"placement:{rule}", []).append((method, path, meaning))
    operations = [
        policy.DocumentedRuleDefault(
            name,
            EXCEPTIONS.get(name, DEFAULT),
            description=operations[0][2],
            operations=[
                {"method": method, "path": path} for method, path, _ in operations
            ],
            scope_types=PROJECT_SCOPE,
        )
        for name, operations in described.items()
    ]
    return [*BASE_RULES, *operations]


class Enforcer(policy.Enforcer):
    """What decides. Its files are read again when they change.

    As long as one of them cannot be parsed nothing is decided, where the library
    would go on with some of the rules from before.
    """

    _broken = False
    # The library forgets the defaults for a moment while it reads a changed file.
    _loading = threading.RLock()

    def load_rules(self, force_reload: bool = False) -> None:
        """Read the files again if they have changed, or could not be read last time.

        :raises Exception: a file cannot be parsed
        """
        with self._loading:
            try:
                super().load_rules(force_reload or self._broken)
            except Exception:
                self._broken = True
                raise
            self._broken = False


def make_enforcer(config: cfg.ConfigOpts) -> Enforcer:
    """Return what decides: the defaults, and what the operator's files say instead.

    :raises Exception: a policy file cannot be parsed
    """
    enforcer = Enforcer(config)
    enforcer.register_defaults(list_rules())
    # Operators learn of the deprecated defaults from the sample file and the manual;
    # a warning for each rule at each start helps nobody.
    enforcer.suppress_deprecation_warnings = True
    enforcer.load_rules()
    return enforcer


def get_enforcer() -> Enforcer:
    """Return an enforcer for the policy tools, which bring no configuration."""
    config = cfg.ConfigOpts()
    config([], project="placement")
    return make_enforcer(config)


def authorize(
    enforcer: Enforcer,
    context: RequestContext,
    rule: str,
    target: Mapping[str, str | None] | None = None,
) -> None:
    """Check that the caller may do what a rule is about.

    :param target: what the rule is applied to; None means the caller's own
    :raises Forbidden: policy says no, or the caller's token has another scope
    """
    if target is None:
        target = {"project_id": context.project_id, "user_id": context.user_id}
    try:
        enforcer.authorize(rule, target, context, do_raise=True)
    except policy.InvalidScope as exc:
        raise errors.Forbidden(rule) from exc
    except policy.PolicyNotAuthorized as exc:
        raise errors.Forbidden(
            f"Policy does not allow {rule} to be performed."
        ) from exc

"""Who may do what: the rules of a service, its defaults and what operators say."""

import threading
from collections.abc import Mapping, Sequence

from oslo_config import cfg
from oslo_policy import policy

from placement_foundation import errors
from placement_foundation.context import RequestContext
from placement_foundation.operation import Operation

PROJECT_SCOPE = ["project"]


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


def list_operation_rules(
    routes: Mapping[str, Mapping[str, Operation]],
    service: str,
    meanings: Mapping[str, str],
    default: str,
    exceptions: Mapping[str, str] | None = None,
) -> list[policy.RuleDefault]:
    """Return the rules of the operations of a service.

    :param service: what the names of the rules begin with
    :param meanings: what each rule lets do, by the rest of its name
    :param default: what all of them say, but for the ``exceptions``, by name
    """
    guarded: dict[str, list[policy.Operation]] = {}
    for path, methods in routes.items():
        for method, operation in methods.items():
            if operation.policy:
                place: policy.Operation = {"method": method, "path": path}
                guarded.setdefault(operation.policy, []).append(place)
    return [
        policy.DocumentedRuleDefault(
            f"{service}:{name}",
            (exceptions or {}).get(f"{service}:{name}", default),
            description=meaning,
            operations=guarded[f"{service}:{name}"],
            scope_types=PROJECT_SCOPE,
        )
        for name, meaning in meanings.items()
    ]


def make_enforcer(
    config: cfg.ConfigOpts, rules: Sequence[policy.RuleDefault]
) -> Enforcer:
    """Return what decides: the defaults, and what the operator's files say instead.

    :raises Exception: a policy file cannot be parsed
    """
    enforcer = Enforcer(config)
    enforcer.register_defaults(rules)
    # Operators learn of the deprecated defaults from the sample file and the manual;
    # a warning for each rule at each start helps nobody.
    enforcer.suppress_deprecation_warnings = True
    enforcer.load_rules()
    return enforcer


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

"""Policy: the rules of a service, their defaults, and operators' overrides."""

import argparse
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from oslo_config import cfg
from oslo_log import log
from oslo_policy import policy

from placement_foundation import errors, option
from placement_foundation.context import RequestContext
from placement_foundation.http.operation import Operation

LOG = log.getLogger(__name__)

PROJECT_SCOPE = ["project"]
# The rule of most operations, where no deprecated rule counts as well.
ADMIN_OR_SERVICE = policy.RuleDefault(
    "admin_or_service_api",
    "role:admin or role:service",
    description="Administrators and services of the cloud.",
    scope_types=PROJECT_SCOPE,
)


# How the checks that are always and never true are written.
ALWAYS_OR_NEVER = ("@", "!")
# How many decisions are cached: one for each rule and set of roles.
MOST_REMEMBERED = 2_000


class Rules:
    """Rules as they were loaded. What depends on roles alone is decided once.

    Most rules do; the others look at the target or at the user, so they are checked
    each time, and so is every request that is refused.
    """

    def __init__(self, loaded: policy.Enforcer) -> None:
        self._loaded = loaded
        self._of_roles = frozenset(
            name
            for name, check in loaded.rules.items()
            if _is_of_roles(check, loaded.rules)
        )
        self._allowed: set[tuple[object, ...]] = set()

    def authorize(
        self, rule: str, target: Mapping[str, str | None], context: RequestContext
    ) -> None:
        """Check that the caller may do what a rule is about.

        :raises policy.PolicyNotAuthorized: the rule does not allow it
        :raises policy.InvalidScope: the caller's token has another scope
        """
        asking = (
            rule,
            frozenset(context.roles),
            context.system_scope,
            bool(context.domain_id),
            bool(context.project_id),
        )
        if asking in self._allowed:
            return
        self._loaded.authorize(rule, target, context, do_raise=True)
        if rule in self._of_roles:
            if len(self._allowed) >= MOST_REMEMBERED:
                self._allowed.clear()
            self._allowed.add(asking)


def _is_of_roles(check: Any, rules: Mapping[str, Any]) -> bool:
    """Return whether nothing but the caller's roles decides a check."""
    if isinstance(check, policy.AndCheck | policy.OrCheck):
        return all(_is_of_roles(part, rules) for part in check.rules)
    if isinstance(check, policy.NotCheck):
        return _is_of_roles(check.rule, rules)
    if isinstance(check, policy.RuleCheck):
        return check.match in rules and _is_of_roles(rules[check.match], rules)
    if isinstance(check, policy.Check):
        return check.kind == "role" and "%" not in check.match
    return str(check) in ALWAYS_OR_NEVER


class Enforcer:
    """Decides by the rules. Policy files are read again when they change.

    A file that is changed, removed or new counts at once. New rules replace the old
    ones when all of them have been read. As long as a file cannot be used, the old
    rules stay in force.

    :raises Exception: a file cannot be used
    """

    def __init__(
        self, config: cfg.ConfigOpts, rules: Sequence[policy.RuleDefault]
    ) -> None:
        self._config = config
        self._rules = rules
        self._loading = threading.Lock()
        self._watched = _list_paths(config)
        self._seen = _look(self._watched)
        self._loaded = Rules(load(config, rules))

    def authorize(
        self,
        rule: str,
        context: RequestContext,
        target: Mapping[str, str | None] | None = None,
    ) -> None:
        """Check that the caller may do what a rule is about.

        :param target: the target of the rule; None means the caller's own project
        :raises Forbidden: the rule does not allow it, or the token has another scope
        """
        # A request that comes while another reads the files gets the old rules.
        if _look(self._watched) != self._seen and self._loading.acquire(blocking=False):
            try:
                self._load_again()
            finally:
                self._loading.release()
        if target is None:
            target = {"project_id": context.project_id, "user_id": context.user_id}
        try:
            self._loaded.authorize(rule, target, context)
        except policy.InvalidScope as exc:
            _log_refusal(rule, target, context)
            raise errors.Forbidden(rule) from exc
        except policy.PolicyNotAuthorized as exc:
            _log_refusal(rule, target, context)
            raise errors.Forbidden(
                f"Policy does not allow {rule} to be performed."
            ) from exc

    def allows(self, context: RequestContext, rule: str) -> bool:
        """Return whether a rule lets the caller in, for the caller's own project."""
        try:
            self.authorize(rule, context)
        except errors.Forbidden:
            return False
        return True

    def _load_again(self) -> None:
        self._watched = _list_paths(self._config)
        # The next request sees changes made while the files are read.
        self._seen = _look(self._watched)
        try:
            self._loaded = Rules(load(self._config, self._rules))
        except Exception as exc:
            LOG.error(
                "The policy cannot be used; the old rules stay in force: %s",
                " ".join(str(exc).split()),
            )


def _log_refusal(
    rule: str, target: Mapping[str, str | None], context: RequestContext
) -> None:
    """Log a refusal, with the credentials of the caller except the token."""
    if LOG.isEnabledFor(logging.DEBUG):
        credentials = dict(context.to_policy_values())
        LOG.debug("policy refuses %s on %s to %s", rule, dict(target), credentials)


def _list_paths(config: cfg.ConfigOpts) -> list[str]:
    """Return the paths at which policy files and directories are or may appear."""
    directories = [
        *config.config_dirs,
        *map(os.path.dirname, config.config_file),
        *(f"~/.{config.project}", "~", f"/etc/{config.project}", "/etc"),
    ]
    paths = []
    for name in (config.oslo_policy.policy_file, *config.oslo_policy.policy_dirs):
        places = [os.path.join(os.path.expanduser(each), name) for each in directories]
        path = config.find_file(name)
        paths += [*places, *([path] if path else [])]
        if path and os.path.isdir(path):
            paths += [os.path.join(path, file) for file in os.listdir(path)]
    return list(dict.fromkeys(map(os.path.abspath, paths)))


def _look(paths: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return a stamp of each path that exists, which differs by version."""
    seen = []
    # This runs for each request, and stat of a missing file takes twice as long.
    for path in paths:
        if os.access(path, os.F_OK):
            with contextlib.suppress(OSError):
                status = os.stat(path)
                seen.append((status.st_mtime_ns, status.st_ino, status.st_size))
    return seen


def load(
    config: cfg.ConfigOpts, rules: Sequence[policy.RuleDefault]
) -> policy.Enforcer:
    """Return the current rules: the defaults, and what files override.

    :raises Exception: a file cannot be used
    """
    loaded = policy.Enforcer(config)
    loaded.register_defaults(rules)
    # Operators learn of the deprecated defaults from the sample file and the manual;
    # a warning for each rule at each start helps no one.
    loaded.suppress_deprecation_warnings = True
    loaded.load_rules()
    # From here on it ignores the files.
    loaded.use_conf = False
    return loaded


def for_tools(project: str, rules: Sequence[policy.RuleDefault]) -> policy.Enforcer:
    """Return the current rules for the policy tools, which pass no configuration.

    They are those of the service: of the files that the arguments of the tool name, or
    that the service reads.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("--config-file", "--config-dir"):
        parser.add_argument(name, action="append", default=[])
    given, _ = parser.parse_known_args(sys.argv[1:])
    files = [f"--config-file={file}" for file in given.config_file]
    directories = [f"--config-dir={directory}" for directory in given.config_dir]
    config = cfg.ConfigOpts()
    option.register(config, [("oslo_policy", option.POLICY_OPTIONS)])
    config(
        [*files, *directories],
        project=project,
        default_config_files=option.list_files(os.environ, project),
    )
    return load(config, rules)


def list_operation_rules(
    routes: Mapping[str, Mapping[str, Operation]],
    service: str,
    meanings: Mapping[str, str],
    default: str,
    exceptions: Mapping[str, str] | None = None,
) -> list[policy.RuleDefault]:
    """Return the rules of the operations of a service.

    :param service: the prefix of the names of the rules
    :param meanings: what each rule permits, by the rest of its name
    :param default: the check of all rules except the ``exceptions``, by name
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

"""All options, with their help; and ``Settings``, the values that handlers need."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keystonemiddleware import opts as keystone_opts
from oslo_config import cfg
from oslo_log import log
from oslo_middleware import cors, http_proxy_to_wsgi

from placement_foundation import option

PROJECT = "placement"

PATH_OPTIONS = [
    cfg.StrOpt(
        "pybasedir",
        default=str(Path(__file__).parent.parent),
        sample_default="<Path>",
        help="Directory of the installed code; what state_path begins with.",
    ),
    cfg.StrOpt(
        "tempdir",
        help="Temporary directory. Accepted for compatibility: nothing uses it.",
    ),
    cfg.StrOpt(
        "state_path",
        default="$pybasedir",
        help="Directory of the service's state. Accepted for compatibility: the "
        "service keeps all state in its database.",
    ),
    cfg.BoolOpt(
        "log_options",
        default=True,
        help="Log the value of every option at DEBUG level when the service starts; "
        "secrets are masked.",
    ),
]


PLACEMENT_OPTIONS = [
    cfg.BoolOpt(
        "randomize_allocation_candidates",
        default=False,
        help="Answer with a random sample of the allocation candidates when a limit "
        "cuts them off, and in random order when none does. Otherwise the same "
        "question about the same data has the same answer.",
    ),
    cfg.StrOpt(
        "incomplete_consumer_project_id",
        default="00000000-0000-0000-0000-000000000000",
        help="The project of consumers whose allocations are written without one, "
        "before microversion 1.8.",
    ),
    cfg.StrOpt(
        "incomplete_consumer_user_id",
        default="00000000-0000-0000-0000-000000000000",
        help="The user of consumers whose allocations are written without one, before "
        "microversion 1.8.",
    ),
    cfg.IntOpt(
        "allocation_conflict_retry_count",
        default=10,
        help="How often a write of allocations is attempted while others change the "
        "same resource providers. With less than 1 none is attempted.",
    ),
    cfg.IntOpt(
        "max_allocation_candidates",
        default=-1,
        help="The most allocation candidates that are generated for one request, "
        "before its own limit applies; -1 is no limit.",
    ),
    cfg.StrOpt(
        "allocation_candidates_generation_strategy",
        default="breadth-first",
        choices=[
            ("depth-first", "all candidates of a tree come before those of the next"),
            ("breadth-first", "each tree gives one candidate in turn"),
        ],
        help="The order in which allocation candidates are generated, and so which "
        "of them a limit leaves. breadth-first offers as many hosts as there are.",
    ),
    cfg.IntOpt(
        "search_picks",
        default=400_000,
        min=1,
        help="How much work the search for allocation candidates may do for one "
        "request, counted in picks of a provider for a request group; an answer counts "
        "one for each of its groups. What was found until then is the answer; if that "
        "is nothing, it is 503 with the code placement.search_exhausted. Each tree "
        "can be looked at once beside that.",
    ),
    cfg.IntOpt(
        "search_picks_per_anchor",
        default=2_000,
        min=1,
        help="How many of these picks the search makes in one provider tree without "
        "an answer before it goes on to the next. It comes back, with eight times as "
        "many, when the other trees have no answers left.",
    ),
    cfg.BoolOpt(
        "keep_forest",
        default=True,
        help="Whether each process keeps all resource providers in memory between "
        "requests, brought up to date by each. It needs about 5 kB for a host. Answers "
        "are the same without it, and take longer.",
    ),
]

WORKAROUND_OPTIONS = [
    cfg.BoolOpt(
        "optimize_for_wide_provider_trees",
        default=False,
        help="Accepted for compatibility and without effect: trees with many similar "
        "children are always searched in a way that copes with them.",
    ),
]

CONSOLE_OPTIONS = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Serve a web page at /console/ that shows what the APIs tell: where room "
        "is, what a host looks like inside, why nothing fits. It has no rights of its "
        "own: who looks at it signs in.",
    ),
]

METRICS_OPTIONS = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Count and time what the service does, and tell it at /metrics in the "
        "format of Prometheus: to those who may read the fleet from the ledger API.",
    ),
    cfg.Opt(
        "address",
        type=option.Address(),
        help="Tell it to all who reach this address as well, such as 127.0.0.1:9178: "
        "the place for Prometheus, which has no token. placement-api and our worker "
        "class of gunicorn listen there. By default nothing does.",
    ),
    cfg.IntOpt(
        "fleet_interval",
        default=60,
        min=1,
        help="Seconds for which the sums over all providers and consumers are kept "
        "before they are asked of the database again, by one process for all of them.",
    ),
]

OPTIONS: list[tuple[str, Sequence[cfg.Opt]]] = [
    ("DEFAULT", PATH_OPTIONS),
    ("api", option.API_OPTIONS),
    ("placement_database", option.DATABASE_OPTIONS),
    ("placement", PLACEMENT_OPTIONS),
    ("workarounds", WORKAROUND_OPTIONS),
    ("console", CONSOLE_OPTIONS),
    ("metrics", METRICS_OPTIONS),
    ("oslo_middleware", http_proxy_to_wsgi.OPTS),
    ("cors", cors.CORS_OPTS),
    ("oslo_policy", option.policy_options()),
]

CORS_DEFAULTS = {
    "allow_headers": [
        "X-Auth-Token",
        "X-Openstack-Request-Id",
        "X-Identity-Status",
        "X-Roles",
        "X-Service-Catalog",
        "X-User-Id",
        "X-Tenant-Id",
        "OpenStack-API-Version",
    ],
    "expose_headers": [
        "X-Auth-Token",
        "X-Openstack-Request-Id",
        "X-Subject-Token",
        "X-Service-Token",
        "OpenStack-API-Version",
    ],
    "allow_methods": ["GET", "PUT", "POST", "DELETE", "PATCH"],
}


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """What handlers need to know: the options of ``[placement]``."""

    randomize_allocation_candidates: bool = False
    incomplete_consumer_project_id: str = "00000000-0000-0000-0000-000000000000"
    incomplete_consumer_user_id: str = "00000000-0000-0000-0000-000000000000"
    allocation_conflict_retry_count: int = 10
    max_allocation_candidates: int = -1
    allocation_candidates_generation_strategy: str = "breadth-first"
    search_picks: int = 400_000
    search_picks_per_anchor: int = 2_000
    keep_forest: bool = True


def set_defaults() -> None:
    """Give options of libraries the defaults that they have in this service."""
    cors.set_defaults(**CORS_DEFAULTS)
    # A library that few have heard of, and one that logs a lot.
    log.set_defaults(default_log_levels=[*log.get_default_log_levels(), "routes=INFO"])


def register(config: cfg.ConfigOpts) -> None:
    """Make all options known to a configuration."""
    set_defaults()
    log.register_options(config)
    for group, options in OPTIONS:
        config.register_opts(options, group=None if group == "DEFAULT" else group)
    config.set_override("enforce_scope", True, "oslo_policy")


def list_options() -> list[tuple[str, Sequence[cfg.Opt]]]:
    """Return all options, for the generator of the sample configuration."""
    keystone = keystone_opts.list_auth_token_opts()
    return [*OPTIONS, *[(group, options) for group, options in keystone]]


def read_for_service(environment: Mapping[str, str] | None = None) -> cfg.ConfigOpts:
    """Return the configuration of the service: files and environment, no arguments.

    :raises cfg.ConfigFilesNotFoundError: ``OS_PLACEMENT_CONFIG_DIR`` is set, and has
        no ``placement.conf``
    """
    found = os.environ if environment is None else environment
    return read([], option.list_files(found, PROJECT))


def read(
    arguments: Sequence[str],
    files: list[str] | None = None,
    *,
    connection: str | None = None,
    **options: Any,
) -> cfg.ConfigOpts:
    """Return a configuration.

    :param files: the configuration files; None means those of the default search
    :param connection: the database to use when none is configured
    :param options: further keywords of ``oslo_config.cfg.ConfigOpts``' call
    :raises cfg.RequiredOptError: no file or variable names the database
    """
    config = cfg.ConfigOpts()
    register(config)
    if connection:
        config.set_default("connection", connection, "placement_database")
    config(
        list(arguments),
        project=PROJECT,
        default_config_files=files,
        **options,
    )
    return config


def database_settings(config: cfg.ConfigOpts) -> option.DatabaseSettings:
    """Return how to reach the database."""
    return option.database_settings(config.placement_database)


def settings(config: cfg.ConfigOpts) -> Settings:
    """Return what handlers need to know."""
    return Settings(**option.values(Settings, config.placement))

"""All options, with their help; and ``Settings``, the values that handlers need."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oslo_config import cfg
from oslo_log import log
from oslo_middleware import cors

from placement_foundation import option

PROJECT = "placement"
DISTRIBUTION = "placement-server"

PATH_OPTIONS = [
    cfg.StrOpt(
        "pybasedir",
        default=str(Path(__file__).parent.parent),
        sample_default="<Path>",
        help="Directory of the installed code. state_path begins with it.",
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
        "cuts them off, and in random order otherwise. When this is off, the same "
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
        help="How many times a write of allocations is attempted while other requests "
        "change the same resource providers. Below 1, none is attempted.",
    ),
    cfg.IntOpt(
        "max_allocation_candidates",
        default=-1,
        help="The most allocation candidates that are generated for one request, "
        "before its own limit applies; -1 means no limit.",
    ),
    cfg.StrOpt(
        "allocation_candidates_generation_strategy",
        default="breadth-first",
        choices=[
            ("depth-first", "all candidates of a tree come before those of the next"),
            ("breadth-first", "each tree gives one candidate in turn"),
        ],
        help="The order in which allocation candidates are generated, which decides "
        "which of them a limit keeps. breadth-first offers as many hosts as possible.",
    ),
    cfg.IntOpt(
        "search_picks",
        default=400_000,
        min=1,
        help="How much work the search for allocation candidates may do for one "
        "request, counted in picks of a provider for a request group; each answer "
        "counts one for each of its groups. When the budget is spent, the candidates "
        "found so far are the answer; if there are none, it is 503 with the code "
        "placement.search_exhausted. Looking at each tree once is not counted.",
    ),
    cfg.IntOpt(
        "search_picks_per_anchor",
        default=2_000,
        min=1,
        help="How many of these picks the search may spend in one provider tree "
        "without an answer before it moves on to the next. It comes back, with eight "
        "times as many, when the other trees have no answers left.",
    ),
    cfg.IntOpt(
        "max_heavy_requests",
        default=1,
        min=1,
        help="How many requests that may take seconds each process answers at a time: "
        "explanations, capacity, what-if and the fleet. Further ones are refused with "
        "503: they compute without a pause, and claims and allocation candidates share "
        "the interpreter of the process with them.",
    ),
    cfg.BoolOpt(
        "keep_forest",
        default=True,
        help="Whether each process keeps all resource providers in memory between "
        "requests and brings them up to date for each. This takes about 3 kB per host. "
        "Without it the answers are the same, but take longer.",
    ),
]

LEDGER_OPTIONS = [
    cfg.BoolOpt(
        "expire_leases",
        default=True,
        help="Whether processes of this service end leases whose time has come, and "
        "with them the allocations of their consumers. Switch it off only where "
        "other processes with the same database do it.",
    ),
    cfg.IntOpt(
        "keep_journal_days",
        default=30,
        min=0,
        help="For how many days the journal is kept: an entry for each thing that a "
        "write has changed, which the ledger API shows as history and as a feed. 0 "
        "switches it off: nothing is recorded, and what was recorded can no longer be "
        "read.",
    ),
    cfg.IntOpt(
        "waiting_readers",
        default=4,
        min=0,
        help="How many readers of the feed of changes may wait for news in one "
        "process; each occupies a thread. Others are answered at once.",
    ),
]

WORKAROUND_OPTIONS = [
    cfg.BoolOpt(
        "optimize_for_wide_provider_trees",
        default=False,
        help="Accepted for compatibility, without effect: the search always copes "
        "with trees that have many similar children.",
    ),
]

CONSOLE_OPTIONS = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Serve a web page at /console/ that shows what the APIs report: where "
        "there is room, what a host looks like inside, why nothing fits. It has no "
        "rights of its own: users sign in.",
    ),
    cfg.StrOpt("cloud", help="The name of the cloud, for the head of the page."),
    cfg.StrOpt("region", help="The name of the region, for the head of the page."),
]

METRICS_OPTIONS = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Count and time what the service does, and publish the metrics at "
        "/metrics in the format of Prometheus, for callers who may read the fleet "
        "from the ledger API.",
    ),
    cfg.Opt(
        "address",
        type=option.Address(),
        help="Also publish the metrics at this address, such as 127.0.0.1:9178, "
        "without authentication: for Prometheus, which has no token. placement-api "
        "and gunicorn with deploy/gunicorn.conf.py listen there. By default nothing "
        "does.",
    ),
    cfg.IntOpt(
        "fleet_interval",
        default=60,
        min=1,
        help="Seconds for which each process keeps the sums over all providers and "
        "consumers before it reads them from the database again.",
    ),
]

OPTIONS: list[tuple[str, Sequence[cfg.Opt]]] = [
    ("DEFAULT", PATH_OPTIONS),
    ("api", option.API_OPTIONS),
    ("placement_database", option.DATABASE_OPTIONS),
    ("placement", PLACEMENT_OPTIONS),
    ("ledger", LEDGER_OPTIONS),
    ("workarounds", WORKAROUND_OPTIONS),
    ("console", CONSOLE_OPTIONS),
    ("metrics", METRICS_OPTIONS),
    *option.LIBRARY_OPTIONS,
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
    """The options of ``[placement]``, which handlers need."""

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
    """Set the defaults of this service for options of libraries."""
    cors.set_defaults(**CORS_DEFAULTS)
    # As OpenStack Placement has them; nothing here uses that library.
    log.set_defaults(default_log_levels=[*log.get_default_log_levels(), "routes=INFO"])


def register(config: cfg.ConfigOpts) -> None:
    """Make all options known to a configuration."""
    set_defaults()
    option.register(config, OPTIONS)


def list_options() -> list[tuple[str, Sequence[cfg.Opt]]]:
    """Return all options, for the generator of the sample configuration."""
    keystone = option.list_keystone()
    return [*OPTIONS, *[(group, options) for group, options in keystone]]


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
    """Return the settings for reaching the database."""
    return option.database_settings(config.placement_database)


def settings(config: cfg.ConfigOpts) -> Settings:
    """Return the settings that handlers need."""
    return Settings(**option.values(Settings, config.placement))

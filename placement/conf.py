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
from oslo_policy import opts as policy_opts

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

API_OPTIONS = [
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=[
            ("keystone", "tokens are validated by the identity service"),
            ("noauth2", "whoever reaches the service is believed: for tests only"),
        ],
        deprecated_group="DEFAULT",
        help="How callers prove who they are.",
    ),
]

DATABASE_OPTIONS = [
    cfg.StrOpt(
        "connection",
        secret=True,
        required=True,
        help="The database, as an SQLAlchemy URL: "
        "mysql+pymysql://user:password@host/placement?charset=utf8mb4, "
        "postgresql+psycopg://user:password@host/placement or "
        "sqlite:////var/lib/placement/placement.db.",
    ),
    cfg.StrOpt(
        "connection_parameters",
        default="",
        help="Appended to the query of the URL: a=b&c=d.",
    ),
    cfg.BoolOpt(
        "sqlite_synchronous",
        default=True,
        help="Whether SQLite waits until a commit is on disk. Without it, a commit "
        "may be lost when the machine fails.",
    ),
    cfg.StrOpt(
        "slave_connection",
        secret=True,
        help="A read replica of the database. Accepted for compatibility and not "
        "used: every answer comes from the one database, so that none is out of date.",
    ),
    cfg.StrOpt(
        "mysql_sql_mode",
        default="TRADITIONAL",
        help="The SQL mode of each MySQL session. An empty value sets the empty mode.",
    ),
    cfg.IntOpt(
        "connection_recycle_time",
        default=3600,
        help="Connections older than this many seconds are replaced before use.",
    ),
    cfg.IntOpt(
        "max_pool_size",
        help="Connections that each process keeps open. 5 if unset. Does not apply to "
        "SQLite.",
    ),
    cfg.IntOpt(
        "max_overflow",
        help="Connections that each process may open beyond max_pool_size. 10 if "
        "unset. Does not apply to SQLite.",
    ),
    cfg.IntOpt(
        "pool_timeout",
        help="Seconds to wait for a connection of the pool. 30 if unset. Does not "
        "apply to SQLite.",
    ),
    cfg.IntOpt(
        "max_retries",
        default=10,
        help="Attempts to connect when the service starts; -1 is for ever.",
    ),
    cfg.IntOpt(
        "retry_interval",
        default=10,
        help="Seconds between those attempts.",
    ),
    cfg.IntOpt(
        "connection_debug",
        default=0,
        min=0,
        max=100,
        help="How much of its SQL the service logs: from 50 on the statements, at 100 "
        "the rows as well.",
    ),
    cfg.BoolOpt(
        "connection_trace",
        default=False,
        help="Add the place in the code to each statement, as a comment.",
    ),
    cfg.BoolOpt(
        "sync_on_startup",
        default=False,
        help="Migrate the schema to the newest revision when the service starts.",
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
        min=0,
        help="How often a write of allocations is attempted while others change the "
        "same resource providers.",
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
]

WORKAROUND_OPTIONS = [
    cfg.BoolOpt(
        "optimize_for_wide_provider_trees",
        default=False,
        help="Accepted for compatibility and without effect: trees with many similar "
        "children are always searched in a way that copes with them.",
    ),
]

# Options of older releases, which configuration files may still carry.
RETIRED_POLICY_OPTIONS = [
    cfg.BoolOpt(
        "enforce_scope",
        default=True,
        help="Accepted for compatibility: scopes are always enforced.",
    ),
]


def _policy_options() -> list[cfg.Opt]:
    """Return the options of oslo.policy, which before its release 6 had all of ours."""
    options = [option for _, group in policy_opts.list_opts() for option in group]
    known = {option.name for option in options}
    return [
        *options,
        *(option for option in RETIRED_POLICY_OPTIONS if option.name not in known),
    ]


OPTIONS: list[tuple[str, Sequence[cfg.Opt]]] = [
    ("DEFAULT", PATH_OPTIONS),
    ("api", API_OPTIONS),
    ("placement_database", DATABASE_OPTIONS),
    ("placement", PLACEMENT_OPTIONS),
    ("workarounds", WORKAROUND_OPTIONS),
    ("oslo_middleware", http_proxy_to_wsgi.OPTS),
    ("cors", cors.CORS_OPTS),
    ("oslo_policy", _policy_options()),
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
class DatabaseSettings:
    """How to reach the database: the options of ``[placement_database]``."""

    connection: str
    connection_parameters: str = ""
    sqlite_synchronous: bool = True
    mysql_sql_mode: str | None = "TRADITIONAL"
    connection_recycle_time: int = 3600
    max_pool_size: int | None = None
    max_overflow: int | None = None
    pool_timeout: int | None = None
    max_retries: int = 10
    retry_interval: int = 10
    connection_debug: int = 0
    connection_trace: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """What handlers need to know: the options of ``[placement]``."""

    randomize_allocation_candidates: bool = False
    incomplete_consumer_project_id: str = "00000000-0000-0000-0000-000000000000"
    incomplete_consumer_user_id: str = "00000000-0000-0000-0000-000000000000"
    allocation_conflict_retry_count: int = 10
    max_allocation_candidates: int = -1
    allocation_candidates_generation_strategy: str = "breadth-first"


def set_defaults() -> None:
    """Give options of libraries the defaults that they have in this service."""
    cors.set_defaults(**CORS_DEFAULTS)
    # Not a library that everybody has in mind, and one that talks a lot.
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
    return read([], list_files(os.environ if environment is None else environment))


def list_files(environment: Mapping[str, str]) -> list[str] | None:
    """Return the files that the environment names; None if it leaves the choice."""
    directory = environment.get("OS_PLACEMENT_CONFIG_DIR", "").strip()
    return [str(Path(directory, f"{PROJECT}.conf"))] if directory else None


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


def database_settings(config: cfg.ConfigOpts) -> DatabaseSettings:
    """Return how to reach the database."""
    return DatabaseSettings(**_values(DatabaseSettings, config.placement_database))


def settings(config: cfg.ConfigOpts) -> Settings:
    """Return what handlers need to know."""
    return Settings(**_values(Settings, config.placement))


def _values(kind: type, group: Any) -> dict[str, Any]:
    """Return the values of the options that have the names of a class's fields."""
    return {
        field.name: getattr(group, field.name) for field in dataclasses.fields(kind)
    }

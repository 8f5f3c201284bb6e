"""The options of every service, and the values that code gets from them."""

import dataclasses
import ipaddress
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from oslo_config import cfg, types
from oslo_log import log
from oslo_middleware import cors, http_proxy_to_wsgi
from oslo_policy import opts as policy_opts

HOST, PORT = types.HostAddress(), types.Port()


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where to listen."""

    host: str
    port: int


class Address(types.ConfigType):
    """The type of an option that is an address to listen on: HOST:PORT, or PORT."""

    def __init__(self) -> None:
        super().__init__(type_name="address")

    def __call__(self, value: str) -> Place:
        """Read a value.

        :raises ValueError: it is not an address
        """
        host, _, port = value.rpartition(":")
        try:
            return Place(HOST(host.strip("[]") or "127.0.0.1"), int(PORT(port) or 0))
        except ValueError:
            raise ValueError(f"{value} is not HOST:PORT") from None

    def _formatter(self, value: str) -> str:
        return value


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, as only this machine reaches it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        # A name, or a web server that is reached in another way than by IP.
        return False


API_OPTIONS = [
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=[
            ("keystone", "tokens are validated by the identity service"),
            ("noauth2", "every caller is believed: for tests only"),
        ],
        deprecated_group="DEFAULT",
        help="How callers are authenticated.",
    ),
    cfg.IntOpt(
        "max_request_body_size",
        default=32 * 1024 * 1024,
        min=1,
        help="The largest body of a request, in bytes. A larger one is answered with "
        "413 and not read. Reshaping a big provider tree takes a few megabytes.",
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
        "used: every answer comes from the one database, and none is out of date.",
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
        help="Seconds to wait for a connection from the pool. 30 if unset. Does not "
        "apply to SQLite.",
    ),
    cfg.IntOpt(
        "max_retries",
        default=10,
        help="Attempts to connect when the service starts; -1 means without end.",
    ),
    cfg.IntOpt(
        "retry_interval",
        default=10,
        help="Seconds between those attempts.",
    ),
    cfg.IntOpt(
        "max_transactions",
        default=6,
        min=1,
        help="Transactions that each process runs at once. Keep it below the number of "
        "threads: requests that need no database are then answered while all of these "
        "wait for it. Further transactions wait for lock_timeout seconds before they "
        "are refused.",
    ),
    cfg.IntOpt(
        "connect_timeout",
        default=10,
        min=0,
        help="Seconds to wait for a connection to a database server; 0 means without "
        "limit. Does not apply to SQLite.",
    ),
    cfg.IntOpt(
        "lock_timeout",
        default=5,
        min=1,
        help="Seconds that a statement waits for a lock held by another transaction, "
        "before its own transaction begins again.",
    ),
    cfg.IntOpt(
        "statement_timeout",
        default=30,
        min=0,
        help="Seconds that a database server may take for a statement; 0 means without "
        "limit. The connection to a server that does not answer for some seconds more "
        "is closed. Does not apply to SQLite.",
    ),
    cfg.IntOpt(
        "connection_debug",
        default=0,
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

# For services that publish their metrics at an address of their own only.
METRICS_OPTIONS = [
    cfg.Opt(
        "address",
        type=Address(),
        help="Count and time what the service does, and publish the metrics in the "
        "format of Prometheus at this address, such as 127.0.0.1:9179, without "
        "authentication. The serve command and gunicorn with deploy/gunicorn.conf.py "
        "listen there. By default nothing is counted.",
    ),
]

# The library's, as a list for each of its groups.
POLICY_OPTIONS = [option for _, group in policy_opts.list_opts() for option in group]

# The variable of the only option that has several values.
POLICY_DIRS = "OS_OSLO_POLICY__POLICY_DIRS"

# Options of libraries that every service uses, by group.
LIBRARY_OPTIONS: list[tuple[str, Sequence[cfg.Opt]]] = [
    ("oslo_middleware", http_proxy_to_wsgi.OPTS),
    ("cors", cors.CORS_OPTS),
    ("oslo_policy", POLICY_OPTIONS),
]


def register(
    config: cfg.ConfigOpts, options: Iterable[tuple[str, Sequence[cfg.Opt]]]
) -> None:
    """Make the options of a service known to a configuration.

    :param options: by group, those of libraries included
    """
    log.register_options(config)
    for group, members in options:
        config.register_opts(members, group=None if group == "DEFAULT" else group)
    # Releases before 6 of the library have it; later ones always do.
    if "enforce_scope" in config.oslo_policy:
        config.set_override("enforce_scope", True, "oslo_policy")
    directories = os.environ.get(POLICY_DIRS)
    if directories is not None:
        # The library would take each character for a directory.
        paths = [each.strip() for each in directories.split(",")]
        config.set_override("policy_dirs", list(filter(None, paths)), "oslo_policy")


def read(
    project: str,
    register: Callable[[cfg.ConfigOpts], object],
    files: list[str] | None,
    connection: str | None = None,
) -> cfg.ConfigOpts:
    """Return the configuration of a program from files and environment.

    :param register: makes the options of the program known
    :param files: the configuration files; None means those of the default search
    :param connection: the database to use when none is configured
    """
    config = cfg.ConfigOpts()
    register(config)
    if connection:
        config.set_default("connection", connection, "database")
    config([], project=project, prog=project, default_config_files=files)
    return config


@dataclasses.dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """The settings for the database: ``DATABASE_OPTIONS``, as the operator set them."""

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
    max_transactions: int | None = None
    connect_timeout: int = 10
    lock_timeout: int = 5
    statement_timeout: int = 30
    connection_debug: int = 0
    connection_trace: bool = False
    sync_on_startup: bool = False


def database_settings(group: Any) -> DatabaseSettings:
    """Return the settings for the database.

    :param group: the group of a configuration that has ``DATABASE_OPTIONS``
    """
    return DatabaseSettings(**values(DatabaseSettings, group))


# An identity service that hangs keeps a thread for no longer than this, more or less.
KEYSTONE_GROUP = "keystone_authtoken"
KEYSTONE_DEFAULTS = {"http_connect_timeout": 5, "http_request_max_retries": 1}


def register_keystone(config: cfg.ConfigOpts) -> None:
    """Make the options for the identity service known, with our own defaults."""
    for group, options in _keystone_options():
        config.register_opts(options, group)
    for name, value in KEYSTONE_DEFAULTS.items():
        config.set_default(name, value, KEYSTONE_GROUP)


def list_keystone() -> list[tuple[str, Sequence[cfg.Opt]]]:
    """Return the options for the identity service, for the samples."""
    listed = _keystone_options()
    for _, options in listed:
        # These are copies.
        cfg.set_defaults(
            [each for each in options if each.name in KEYSTONE_DEFAULTS],
            **KEYSTONE_DEFAULTS,
        )
    return listed


def _keystone_options() -> list[tuple[str, Sequence[cfg.Opt]]]:
    # Loaded late, so that programs without an identity service need not wait.
    from keystonemiddleware import opts

    listed: list[tuple[str, Sequence[cfg.Opt]]] = opts.list_auth_token_opts()
    return listed


def check_values(config: cfg.ConfigOpts) -> None:
    """Read all options, to report any value that cannot be used.

    :raises cfg.Error: an option has such a value
    :raises ValueError: likewise
    """
    if config.api.auth_strategy == "keystone":
        # These belong to a library, which reads them when the service starts.
        register_keystone(config)
    for name in config:
        value = config[name]
        if isinstance(value, cfg.ConfigOpts.GroupAttr):
            for inner in value:
                value[inner]


def values(kind: type, group: Any) -> dict[str, Any]:
    """Return the values of the options that have the names of a class's fields."""
    return {
        field.name: getattr(group, field.name) for field in dataclasses.fields(kind)
    }


def directory_variable(project: str) -> str:
    """Return the variable that names the directory of a project's configuration."""
    return f"OS_{project.upper().replace('-', '_')}_CONFIG_DIR"


def list_files(environment: Mapping[str, str], project: str) -> list[str] | None:
    """Return the files that the environment names; None if it names none."""
    directory = environment.get(directory_variable(project), "").strip()
    return [str(Path(directory, f"{project}.conf"))] if directory else None

"""``placement-api``: the service, with the web server and database that it brings."""

import argparse
import ipaddress
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from alembic import util as alembic
from gunicorn.app import base
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log

from placement import app, conf, policy
from placement.db import migration
from placement.objects import standard_name
from placement_foundation import storage
from placement_foundation.log import set_up_logging
from placement_foundation.storage import Database

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

LOG = log.getLogger(__name__)

PROGRAM = "placement-api"
PORT = 8778
# Enough to keep a process busy while some of its threads wait for the database.
THREADS = 4
KEEP_ALIVE_SECONDS = 75
BACKLOG = 2048


class Unusable(Exception):
    """What the operator asked for cannot be done. The message is for the operator."""


class Server(base.BaseApplication):  # type: ignore[misc]
    """The web server: several processes with threads, connections kept alive."""

    def __init__(
        self, config: cfg.ConfigOpts, listener: socket.socket, workers: int
    ) -> None:
        self._config = config
        self._options = {
            "bind": f"fd://{listener.fileno()}",
            "workers": workers,
            "worker_class": "gthread",
            "threads": THREADS,
            "keepalive": KEEP_ALIVE_SECONDS,
            # Many groups of resources, or many aggregates, make a long query.
            "limit_request_line": 0,
            "graceful_timeout": 10,
            "proc_name": PROGRAM,
            "loglevel": "warning",
            "control_socket_disable": True,
        }
        super().__init__()

    def load_config(self) -> None:
        """Hand the options to the server."""
        for name, value in self._options.items():
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    def load(self) -> "WSGIApplication":
        """Make the application, in each process its own."""
        return app.start(self._config)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the API until told to stop; return the exit code."""
    asked = _parse(arguments)
    try:
        config = _configure(asked)
        _check_exposure(config, asked)
        _prepare_database(config)
        listener = _listen(asked.host, asked.port)
    except Unusable as exc:
        print(f"{PROGRAM}: {exc}", file=sys.stderr)
        return 1
    _announce(config, listener, asked.workers)
    set_up_logging(config, conf.PROJECT)
    Server(config, listener, asked.workers).run()
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Serve the placement API. Without any configuration it uses an "
        "embedded database, believes what callers say of themselves, and listens "
        "on the loopback interface only.",
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (%(default)s)"
    )
    parser.add_argument(
        "--port",
        type=int,
        default=PORT,
        help="port to listen on (%(default)s); 0 picks a free one",
    )
    parser.add_argument(
        "--workers",
        type=_positive,
        default=os.cpu_count() or 1,
        help="number of processes (%(default)s, one for each processor)",
    )
    parser.add_argument(
        "--config-file",
        action="append",
        metavar="PATH",
        help="configuration file; may be repeated, later ones win "
        "(placement.conf in OS_PLACEMENT_CONFIG_DIR, or else in ~/.placement, ~, "
        "/etc/placement, /etc)",
    )
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="listen where others can reach it even though nobody is authenticated",
    )
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    if int(text) < 1:
        raise ValueError("at least one")
    return int(text)


def _configure(asked: argparse.Namespace) -> cfg.ConfigOpts:
    """Return the configuration; where no database is named, it is the embedded one.

    :raises Unusable: a configuration or policy file is missing or broken
    """
    files = asked.config_file or conf.list_files(os.environ)
    try:
        config = conf.read([], files, connection=_embedded_url(), prog=PROGRAM)
        if is_embedded(config):
            config.set_default("auth_strategy", "noauth2", "api")
        # Read now, so that a value that is none of the choices is told now.
        LOG.debug("callers are authenticated by %s", config.api.auth_strategy)
    except (cfg.Error, ValueError) as exc:
        raise Unusable(_one_line(exc)) from exc
    try:
        policy.make_enforcer(config)
    except Exception as exc:
        raise Unusable(f"the policy cannot be used: {_one_line(exc)}") from exc
    return config


def _embedded_url() -> str:
    directory = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return f"sqlite:///{Path(directory, 'placement', 'placement.db')}"


def is_embedded(config: cfg.ConfigOpts) -> bool:
    """Tell whether the service brings its own database."""
    return bool(config.placement_database.connection == _embedded_url())


def _check_exposure(config: cfg.ConfigOpts, asked: argparse.Namespace) -> None:
    """Keep a service that believes everybody away from everybody.

    :raises Unusable: others could reach it, and nobody said that this is meant
    """
    open_to_all = config.api.auth_strategy == "noauth2"
    if open_to_all and not _is_loopback(asked.host) and not asked.insecure:
        raise Unusable(
            f"with auth_strategy = noauth2 whoever reaches {asked.host} may do "
            "anything; listen on 127.0.0.1, or say --insecure"
        )


def _is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _prepare_database(config: cfg.ConfigOpts) -> None:
    """Migrate the embedded database, and see that a configured one can be used.

    :raises Unusable: it cannot be reached, written, or has no tables
    """
    settings = conf.database_settings(config)
    try:
        if is_embedded(config):
            Path(str(sa.make_url(settings.connection).database)).parent.mkdir(
                parents=True, exist_ok=True
            )
        database = storage.connect(settings)
        try:
            _fill_database(config, database)
        finally:
            # The processes to come open connections of their own.
            database.rest()
    except (
        OSError,
        sa.exc.SQLAlchemyError,
        db_exc.DBError,
        alembic.CommandError,
    ) as exc:
        raise Unusable(
            f"the database cannot be used: {_one_line(exc)} "
            f"({sa.make_url(settings.connection).render_as_string()})"
        ) from exc


def _fill_database(config: cfg.ConfigOpts, database: Database) -> None:
    """Give a database all that the service needs, its tables only if that is wanted.

    :raises Unusable: it has no tables
    """
    if is_embedded(config) or config.placement_database.sync_on_startup:
        migration.SCHEMA.upgrade(database)
    if migration.SCHEMA.version(database) is None:
        raise Unusable("the database has no tables: run placement-manage db sync")
    standard_name.synchronise(database)


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that accepts connections.

    :raises Unusable: the address is taken, or is none of this machine's
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as exc:
        raise Unusable(f"cannot listen on {host} port {port}: {exc}") from exc
    listener.set_inheritable(True)
    return listener


def _announce(config: cfg.ConfigOpts, listener: socket.socket, workers: int) -> None:
    host, port = listener.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    database = sa.make_url(config.placement_database.connection)
    print(f"Placement is served at {url}/ by {workers} processes. Ctrl-C ends it.")
    print(f"Database: {database.render_as_string()}")
    if config.api.auth_strategy == "noauth2":
        print("Nobody is authenticated: whoever reaches this address may do anything.")
        print("Try:")
        print(
            "  curl -H 'X-Auth-Token: admin' "
            f"-H 'OpenStack-API-Version: placement latest' {url}/resource_providers"
        )
    sys.stdout.flush()


def _one_line(exc: BaseException) -> str:
    inner = getattr(exc, "inner_exception", None) or exc
    return " ".join(str(getattr(inner, "orig", None) or inner).split())


if __name__ == "__main__":
    sys.exit(main())

"""Programs that serve: a service with its own web server and embedded database."""

import argparse
import dataclasses
import functools
import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from oslo_config import cfg
from oslo_log import log

from placement_foundation import option
from placement_foundation.database import storage
from placement_foundation.database.migration import History
from placement_foundation.database.storage import Database
from placement_foundation.http.policy import Enforcer
from placement_foundation.observing.log import set_up_logging
from placement_foundation.serving import command, web_server

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

LOG = log.getLogger(__name__)

BACKLOG = 2048


class Unusable(Exception):
    """What the operator asked for cannot be done. The message is for the operator."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The parts of programs that serve in which they differ.

    ``name`` is the name of the command, ``title`` of the service, ``project`` of its
    files. ``database_group`` has the options of the database. ``read`` returns the
    configuration from some files, with a database to use when none is configured.
    ``check`` raises Unusable if the service cannot start with a configuration.
    ``fill`` stores what the service needs in a database with tables; ``sync_command``
    makes the tables. ``begin`` is called in each process that begins to serve: threads
    that were started before the fork do not exist there. ``example`` returns a command
    to try at a URL. ``list_places`` returns a line for each further address below the
    URL.
    """

    name: str
    title: str
    project: str
    port: int
    database_group: str
    read: Callable[[list[str] | None, str], cfg.ConfigOpts]
    make_enforcer: Callable[[cfg.ConfigOpts], Enforcer]
    schema: History
    start: Callable[[cfg.ConfigOpts], "WSGIApplication"]
    sync_command: str
    example: Callable[[str], str]
    check: Callable[[cfg.ConfigOpts], object] = lambda config: None
    fill: Callable[[Database], object] = lambda database: None
    begin: Callable[[cfg.ConfigOpts], object] = lambda config: None
    list_places: Callable[[cfg.ConfigOpts, str], list[str]] = lambda config, url: []


def add_arguments(parser: argparse.ArgumentParser, program: Program) -> None:
    """Add the arguments of every program that serves."""
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (%(default)s)"
    )
    parser.add_argument(
        "--port",
        type=int,
        default=program.port,
        help="port to listen on (%(default)s); 0 picks a free one",
    )
    parser.add_argument(
        "--workers",
        type=_count,
        default=os.cpu_count() or 1,
        help="number of processes (%(default)s, one for each processor)",
    )
    command.add_config_file(parser, program.project)
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="listen on a public address although callers are not authenticated",
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return int(text)


def serve(program: Program, asked: argparse.Namespace) -> int:
    """Serve until it is stopped; return the exit code.

    :param asked: the values of the arguments from ``add_arguments``
    """

    def work(config: cfg.ConfigOpts) -> None:
        _check_exposure(config, asked)
        prepare_database(program, config)
        program.check(config)
        listener = _listen(asked.host, asked.port)
        _open_log(program, config)
        _announce(program, config, listener, asked.workers)
        _serve(program, config, listener, asked.workers)

    return run_configured(program, asked, work)


def _serve(
    program: Program, config: cfg.ConfigOpts, listener: socket.socket, workers: int
) -> None:
    def begin(worker: Any) -> None:
        web_server.post_worker_init(worker)
        program.begin(config)

    settings = {
        "bind": f"fd://{listener.fileno()}",
        "workers": workers,
        "graceful_timeout": 10,
        "proc_name": program.name,
        "loglevel": "warning",
        "post_worker_init": begin,
    }
    web_server.Server(functools.partial(program.start, config), settings).run()


def _open_log(program: Program, config: cfg.ConfigOpts) -> None:
    """Begin to write the log.

    :raises Unusable: it cannot be written, or an option for it makes no sense
    """
    try:
        set_up_logging(config, program.project)
    except Exception as exc:
        # Each kind of log raises its own errors.
        raise Unusable(f"the log cannot be written: {command.describe(exc)}") from exc


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """Return the parser of a command, which its function describes and executes."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=run.__doc__, description=run.__doc__
    )
    parser.set_defaults(run=run)
    return parser


def add_database_commands(commands: Any, program: Program) -> None:
    """Add the commands for the database of a program: ``db sync``."""

    def sync(asked: argparse.Namespace) -> int:
        """Create the tables, or migrate them to the newest revision."""

        def work(config: cfg.ConfigOpts) -> None:
            prepare_database(program, config, migrate=True)

        return run_configured(program, asked, work)

    database = commands.add_parser("db", help="Manage the database.")
    actions = database.add_subparsers(title="actions", required=True)
    parser = add_command(actions, "sync", sync)
    command.add_config_file(parser, program.project)


def run_configured(
    program: Program,
    asked: argparse.Namespace,
    work: Callable[[cfg.ConfigOpts], object],
) -> int:
    """Do some work with the configuration; return the exit code."""
    try:
        work(configure(program, asked.config_file))
    except Unusable as exc:
        command.complain(program.name, exc)
        return 1
    return 0


def configure(program: Program, files: Sequence[str] | None) -> cfg.ConfigOpts:
    """Return the configuration; the database is the embedded one if none is named.

    :raises Unusable: a configuration or policy file is missing or broken
    """
    paths = list(files or ()) or option.list_files(os.environ, program.project)
    try:
        config = program.read(paths, embedded_url(program))
        if is_embedded(program, config):
            config.set_default("auth_strategy", "noauth2", "api")
        # Read all now, to report now a value that cannot be used.
        option.check_values(config)
    except (cfg.Error, ValueError, OSError) as exc:
        raise Unusable(command.describe(exc)) from exc
    try:
        program.make_enforcer(config)
    except Exception as exc:
        raise Unusable(f"the policy cannot be used: {command.describe(exc)}") from exc
    return config


def embedded_url(program: Program) -> str:
    """Return the URL of the embedded database of a program."""
    directory = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    path = Path(directory, program.project, f"{program.project}.db")
    return f"sqlite:///{path}"


def is_embedded(program: Program, config: cfg.ConfigOpts) -> bool:
    """Return whether the service uses its embedded database."""
    return _connection(program, config) == embedded_url(program)


def _connection(program: Program, config: cfg.ConfigOpts) -> str:
    return str(config[program.database_group].connection)


def _check_exposure(config: cfg.ConfigOpts, asked: argparse.Namespace) -> None:
    """Refuse to let other machines reach a service that trusts every caller.

    :raises Unusable: others could reach it, and ``--insecure`` is not given
    """
    open_to_all = config.api.auth_strategy == "noauth2"
    if open_to_all and not option.is_loopback(asked.host) and not asked.insecure:
        raise Unusable(
            f"with auth_strategy = noauth2 every caller that reaches {asked.host} may "
            "do anything; listen on 127.0.0.1, or pass --insecure"
        )


def prepare_database(
    program: Program, config: cfg.ConfigOpts, *, migrate: bool = False
) -> None:
    """Migrate the embedded database, or check that a configured one can be used.

    :param migrate: whether a configured one is to be migrated as well
    :raises Unusable: it cannot be reached or written, or has no tables
    """
    settings = option.database_settings(config[program.database_group])
    try:
        if is_embedded(program, config):
            _make_private(Path(str(sa.make_url(settings.connection).database)))
            migrate = True
        database = storage.connect(settings)
        try:
            _fill(program, config, database, migrate)
        finally:
            # The server processes will open their own connections.
            database.rest()
    except command.TROUBLE as exc:
        raise Unusable(
            f"the database of [{program.database_group}] cannot be used: "
            f"{command.describe(exc)}"
        ) from exc


def _make_private(path: Path) -> None:
    """Create the file of a database if it is missing; let only its owner read it.

    The same goes for the files that SQLite puts next to it.
    """
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.parent.chmod(0o700)
    path.touch(mode=0o600)
    for file in path.parent.glob(f"{path.name}*"):
        file.chmod(0o600)


def _fill(
    program: Program, config: cfg.ConfigOpts, database: Database, migrate: bool
) -> None:
    """Store what the service needs in a database; create its tables only if wanted.

    :raises Unusable: it has no tables
    """
    if migrate:
        program.schema.upgrade(database)
    elif config[program.database_group].sync_on_startup:
        program.schema.upgrade_to_serve(database)
    if program.schema.version(database) is None:
        raise Unusable(f"the database has no tables: run {program.sync_command}")
    program.fill(database)


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that accepts connections.

    :raises Unusable: the address is taken, or does not belong to this machine
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as exc:
        raise Unusable(f"cannot listen on {host} port {port}: {exc}") from exc
    listener.set_inheritable(True)
    return listener


def _announce(
    program: Program, config: cfg.ConfigOpts, listener: socket.socket, workers: int
) -> None:
    host, port = listener.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    database = sa.make_url(_connection(program, config))
    print(
        f"{program.title} is served at {url}/ by {workers} processes. Ctrl-C ends it."
    )
    for line in program.list_places(config, url):
        print(line)
    print(f"Database: {database.render_as_string()}")
    if config.api.auth_strategy == "noauth2":
        print("Callers are not authenticated: every caller may do anything.")
        print("Try:")
        print(f"  {program.example(url)}")
    sys.stdout.flush()

"""A database server of our own, which may be killed: PostgreSQL or MariaDB."""

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa

from tests import backends, programs

PATIENCE_SECONDS = 60
DATABASE = "placement"


class Server(Protocol):
    """A database server with an empty database."""

    @property
    def url(self) -> str:
        """The URL of the database."""

    def kill(self) -> None:
        """End it at once, as a loss of power to its processes would."""

    def start(self) -> None:
        """Start it, and wait until it answers."""


class _Embedded:
    """SQLite has no server: its readers and writers are the workers."""

    def __init__(self, directory: Path) -> None:
        self.url = f"sqlite:///{directory / DATABASE}.db"

    def kill(self) -> None:
        """Do nothing: there is nothing to kill."""

    def start(self) -> None:
        """Do nothing."""


class _Own:
    """A server in a directory of its own."""

    def __init__(self, scheme: str, user: str, port: int, command: list[str]) -> None:
        self._server_url = f"{scheme}://{user}@127.0.0.1:{port}"
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"{self._server_url}/{DATABASE}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + PATIENCE_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                raise TimeoutError(f"{self._command} does not start")
            time.sleep(0.1)

    def kill(self) -> None:
        """End all its processes at once."""
        if self._process is None:
            return
        family = [self._process.pid, *children(self._process.pid)]
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._process = None
        until = time.monotonic() + PATIENCE_SECONDS
        while any(map(_runs, family)) and time.monotonic() < until:
            time.sleep(0.02)

    def create_database(self, maintenance: str) -> None:
        """Create the database, over one that each server has."""
        url = f"{self._server_url}/{maintenance}"
        engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {DATABASE}"))
        engine.dispose()

    def _answers(self) -> bool:
        maintenance = "mysql" if "mysql" in self._server_url else "postgres"
        engine = sa.create_engine(f"{self._server_url}/{maintenance}")
        try:
            with engine.connect():
                return True
        except sa.exc.DBAPIError:
            return False
        finally:
            engine.dispose()


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    try:
        return [
            int(child)
            for path in Path(f"/proc/{pid}/task").glob("*/children")
            for child in path.read_text().split()
        ]
    except OSError:
        return []


def _runs(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def is_installed() -> bool:
    """Return whether a server of the kind that is tested can be started here."""
    if backends.KIND == "postgresql":
        return _program("initdb") is not None
    return backends.KIND == "sqlite" or shutil.which("mariadb-install-db") is not None


def _program(name: str) -> str | None:
    """Return the path of a program of PostgreSQL, which Debian keeps apart."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    return found[-1] if found else shutil.which(name)


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """Give a server of the kind that is tested, which is killed at the end."""
    with tempfile.TemporaryDirectory(prefix="placement-crash-") as name:
        directory = Path(name)
        # Servers do not run as root, whose directories are closed to others.
        directory.chmod(0o755)
        if backends.KIND == "sqlite":
            yield _Embedded(directory)
            return
        make = _make_postgresql if backends.KIND == "postgresql" else _make_mariadb
        server = make(directory / "data", programs.free_port())
        try:
            server.start()
            server.create_database(
                "postgres" if backends.KIND == "postgresql" else "mysql"
            )
            yield server
        finally:
            server.kill()


def _make_postgresql(directory: Path, port: int) -> _Own:
    home(directory, "postgres")
    # A killed process leaves what it wrote to the system, so nothing need be synced.
    initialise = ["-D", str(directory), "-U", "postgres", "-A", "trust", "--no-sync"]
    run_as("postgres", [str(_program("initdb")), *initialise])
    options = {
        "port": port,
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "fsync": "off",
        "max_connections": 200,
    }
    settings = [f"--{name}={value}" for name, value in options.items()]
    command = [str(_program("postgres")), "-D", str(directory), *settings]
    return _Own("postgresql+psycopg", "postgres", port, as_user("postgres", command))


def _make_mariadb(directory: Path, port: int) -> _Own:
    install_mariadb(directory)
    command = [
        "mariadbd",
        "--no-defaults",
        *(["--user=mysql"] if os.geteuid() == 0 else []),
        f"--datadir={directory}",
        f"--port={port}",
        "--bind-address=127.0.0.1",
        f"--socket={directory}/sock",
        f"--pid-file={directory}/pid",
        # Written at each commit, though not synced: see above.
        "--innodb-flush-log-at-trx-commit=2",
        "--innodb-buffer-pool-size=64M",
        "--innodb-log-file-size=16M",
        "--max-connections=300",
        "--skip-name-resolve",
    ]
    return _Own("mysql+pymysql", "root", port, command)


def install_mariadb(directory: Path) -> None:
    """Make an empty MariaDB server in a new directory."""
    home(directory, "mysql")
    command = [
        "mariadb-install-db",
        "--no-defaults",
        *(["--user=mysql"] if os.geteuid() == 0 else []),
        f"--datadir={directory}",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
    ]
    subprocess.run(command, check=True, capture_output=True)


def home(directory: Path, user: str) -> None:
    """Make a directory for a server, which does not run as root."""
    directory.mkdir()
    if os.geteuid() == 0:
        shutil.chown(directory, user, user)


def as_user(user: str, command: Sequence[str]) -> list[str]:
    """Return a command that runs as another user if this one is root."""
    if os.geteuid() != 0:
        return list(command)
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *command]


def run_as(user: str, command: Sequence[str]) -> None:
    """Run a command to its end."""
    subprocess.run(as_user(user, command), check=True, capture_output=True, cwd="/")

"""A Galera cluster of our own, on this machine."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from tests import programs
from tests.stress import server

LIBRARY = Path("/usr/lib/galera/libgalera_smm.so")
PATIENCE_SECONDS = 120
DATABASE = "placement"
# A node that says nothing is left behind after a few seconds, not after fifteen.
TIMES = (
    "evs.keepalive_period=PT0.5S;evs.suspect_timeout=PT2S;"
    "evs.inactive_timeout=PT4S;evs.install_timeout=PT4S"
)


class Node:
    """A server of the cluster."""

    def __init__(self, directory: Path, number: int, ports: list[list[int]]) -> None:
        self.directory = directory / f"node{number}"
        self.port, self.group_port, ist_port, sst_port = ports[number]
        self._process: subprocess.Popen[bytes] | None = None
        others = ",".join(f"127.0.0.1:{group}" for _, group, _, _ in ports)
        provider = (
            f"gmcast.listen_addr=tcp://127.0.0.1:{self.group_port};"
            f"ist.recv_addr=127.0.0.1:{ist_port};{TIMES}"
        )
        self._command = [
            "mariadbd",
            "--no-defaults",
            "--user=mysql",
            f"--datadir={self.directory}",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            f"--socket={self.directory}/sock",
            f"--pid-file={self.directory}/pid",
            f"--log-error={self.directory}/error.log",
            "--binlog-format=ROW",
            "--default-storage-engine=InnoDB",
            "--innodb-autoinc-lock-mode=2",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=64M",
            "--innodb-log-file-size=16M",
            "--skip-name-resolve",
            "--wsrep-on=ON",
            f"--wsrep-provider={LIBRARY}",
            "--wsrep-cluster-name=placement-test",
            f"--wsrep-node-name=node{number}",
            f"--wsrep-node-address=127.0.0.1:{self.group_port}",
            f"--wsrep-provider-options={provider}",
            "--wsrep-sst-method=rsync",
            f"--wsrep-sst-receive-address=localhost:{sst_port}",
            f"--wsrep-cluster-address=gcomm://{others}",
        ]

    def url(self, database: str = DATABASE) -> str:
        """Return the URL of a database on this node."""
        # A read sees what any node has committed before.
        return (
            f"mysql+pymysql://root@127.0.0.1:{self.port}/{database}"
            "?init_command=SET%20SESSION%20wsrep_sync_wait%3D1"
        )

    def start(self, *arguments: str) -> None:
        """Start it, and wait until it is part of the cluster."""
        self._process = subprocess.Popen(
            [*self._command, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.wait()

    def wait(self) -> None:
        """Wait until it is part of the cluster."""
        until = time.monotonic() + PATIENCE_SECONDS
        while self.state() != "Synced":
            ended = self._process is not None and self._process.poll() is not None
            if ended or time.monotonic() > until:
                raise TimeoutError((self.directory / "error.log").read_text()[-4000:])
            time.sleep(0.1)

    def state(self) -> str | None:
        """Return what it takes itself for; None if it does not answer."""
        engine = sa.create_engine(
            f"mysql+pymysql://root@127.0.0.1:{self.port}/",
            connect_args={"connect_timeout": 1, "read_timeout": 1},
        )
        try:
            with engine.connect() as connection:
                query = sa.text("SHOW STATUS LIKE 'wsrep_local_state_comment'")
                row = connection.execute(query).one()
                return str(row[1])
        except sa.exc.DBAPIError:
            return None
        finally:
            engine.dispose()

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        if self._process:
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        """End it at once."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def running(size: int = 3) -> Iterator[list[Node]]:
    """Give the nodes of a cluster that has an empty database."""
    with tempfile.TemporaryDirectory(prefix="placement-galera-") as name:
        directory = Path(name)
        # The servers do not run as root, whose directories are closed to others.
        directory.chmod(0o755)
        shutil.chown(directory, "mysql", "mysql")
        with _running(directory, size) as nodes:
            yield nodes


@contextlib.contextmanager
def _running(directory: Path, size: int) -> Iterator[list[Node]]:
    ports = [programs.free_ports(4) for _ in range(size)]
    nodes = [Node(directory, number, ports) for number in range(size)]
    try:
        for node in nodes:
            server.install_mariadb(node.directory)
        first, *others = nodes
        first.start("--wsrep-new-cluster")
        for node in others:
            node.start()
        engine = sa.create_engine(first.url("mysql"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {DATABASE}"))
        engine.dispose()
        yield nodes
    finally:
        for node in nodes:
            node.kill()

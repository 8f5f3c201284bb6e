"""Connections of clients that come at once, and stay, are shared by the processes."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import programs
from tests.functional.test_web_server import HELLO, read_answer

pytestmark = pytest.mark.embedded

PATIENCE = 60
PROCESSES = 3
PROGRAM = """
import os, sys
from gunicorn.app.base import BaseApplication
from placement_foundation.serving import program, worker

def answer(environment, start_response):
    body = b"%d" % os.getpid()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]

class Server(BaseApplication):
    def load_config(self):
        self.cfg.set("bind", sys.argv[1])
        self.cfg.set("workers", int(sys.argv[2]))
        self.cfg.set("threads", 2)
        self.cfg.set("worker_class", program.WORKER_CLASS)
        self.cfg.set("reuse_port", sys.argv[1] != "unix:socket")
        if "control_socket_disable" in self.cfg.settings:
            self.cfg.set("control_socket_disable", True)

    def load(self):
        return answer

for setting in sys.argv[3:]:
    name, value = setting.split("=")
    setattr(worker, name, float(value))
Server().run()
"""
# On a busy machine a process may not run for a while, and others wait for it.
WAITING = ("DEFERRED_SECONDS=2", "ALONE_SECONDS=0.01")
ALL_IN_USE = "IN_USE_SECONDS=1000"


class Clients:
    """Connections that stay open, by the process that answers on them."""

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        self._connect = connect
        self._open: list[tuple[int, socket.socket]] = []

    def open(self, count: int) -> Counter[int]:
        """Open so many at once, and return how many each process has got of them."""
        made = [self._connect() for _ in range(count)]
        opened = [(ask(client), client) for client in made]
        self._open += opened
        return Counter(process for process, _ in opened)

    def close(self, which: list[int]) -> None:
        """Close some of them, by number, when the processes have done so."""
        for number in which:
            client = self._open[number][1]
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_WR)
                client.recv(1)
            client.close()
        self._open = [
            each for number, each in enumerate(self._open) if number not in which
        ]
        # A process shows what it has before it looks for another request.
        for client in dict(self._open).values():
            ask(client)
        time.sleep(0.1)

    def close_those_of(self, *processes: int) -> None:
        """Close all that some processes have."""
        self.close([n for n, each in enumerate(self._open) if each[0] in processes])

    def __len__(self) -> int:
        return len(self._open)

    def count(self) -> Counter[int]:
        """Return how many each process has."""
        return Counter(process for process, _ in self._open)

    def open_on_each(self, processes: int = PROCESSES) -> None:
        """Open more until every process has some; it may have to start."""
        end = time.monotonic() + PATIENCE
        while len(self.count()) < processes:
            assert time.monotonic() < end
            self.open(1)
            time.sleep(0.02)

    def open_missing(self) -> None:
        """Open, at once, as many as the processes have fewer than one of them."""
        counts = self.count()
        self.open(sum(max(counts.values()) - each for each in counts.values()))

    def is_level(self) -> bool:
        """Return whether no process has two more than another one."""
        counts = self.count().values()
        return max(counts) - min(counts) <= 1


def ask(client: socket.socket) -> int:
    """Return which process answers."""
    client.sendall(HELLO)
    return int(read_answer(client))


@contextlib.contextmanager
def serving(
    directory: Path, *settings: str, processes: int = PROCESSES, port: int | None = None
) -> Iterator[Clients]:
    """Give clients of a server whose processes all accept connections."""

    def connect() -> socket.socket:
        client = socket.socket(socket.AF_INET if port else socket.AF_UNIX)
        client.settimeout(PATIENCE)
        try:
            # A path is relative, since that of a socket has to be short.
            client.connect(("127.0.0.1", port) if port else "socket")
        except OSError:
            client.close()
            raise
        return client

    where = f"127.0.0.1:{port}" if port else "unix:socket"
    with contextlib.chdir(directory):
        server = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, where, str(processes), *settings],
            env=programs.environment(directory),
        )
        try:
            end = time.monotonic() + PATIENCE
            while True:
                with contextlib.suppress(OSError):
                    connect().close()
                    break
                assert time.monotonic() < end
                time.sleep(0.05)
            clients = Clients(connect)
            clients.open_on_each(processes)
            yield clients
            clients.close_those_of(*clients.count())
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                assert server.wait(PATIENCE) == 0
            finally:
                server.kill()


def test_connections_that_come_at_once_are_shared(tmp_path: Path) -> None:
    with serving(tmp_path, *WAITING, ALL_IN_USE) as clients:
        clients.open_missing()
        for _ in range(3):
            assert clients.is_level(), clients.count()
            clients.open(8)
        assert clients.is_level(), clients.count()


def test_a_process_that_hangs_is_waited_for_a_while_only(tmp_path: Path) -> None:
    with serving(tmp_path, *WAITING, ALL_IN_USE) as clients:
        clients.open_missing()
        clients.open(PROCESSES)
        hanging, *others = clients.count()
        # It has the fewest.
        clients.close_those_of(hanging)
        os.kill(hanging, signal.SIGSTOP)
        try:
            opened = clients.open(2)
        finally:
            os.kill(hanging, signal.SIGCONT)
        assert set(opened) <= set(others)
        # It gets those that come now, until it has as many.
        clients.open_on_each()
        clients.open_missing()
        assert clients.is_level(), clients.count()


def test_whatever_happens_the_next_connections_make_it_level(tmp_path: Path) -> None:
    seed = random.randrange(10**9)
    print("seed", seed)
    chance = random.Random(seed)
    with serving(tmp_path, *WAITING, ALL_IN_USE) as clients:
        for _ in range(6):
            match chance.choice(["open", "open", "close", "close", "kill"]):
                case "open":
                    clients.open(chance.randrange(1, 12))
                case "close":
                    some = chance.randrange(len(clients) + 1)
                    clients.close(chance.sample(range(len(clients)), some))
                case "kill":
                    killed = chance.choice(list(clients.count()))
                    os.kill(killed, signal.SIGKILL)
                    clients.close_those_of(killed)
            clients.open_on_each()
            clients.open_missing()
            assert clients.is_level(), (seed, clients.count())


def test_a_process_with_idle_connections_gets_its_share(tmp_path: Path) -> None:
    with serving(tmp_path, *WAITING, "IN_USE_SECONDS=1") as clients:
        clients.open_missing()
        clients.open(PROCESSES * 4)
        idle, *others = clients.count()
        clients.close_those_of(*others)
        # Until it has been noticed, once a second, that nothing is sent there.
        time.sleep(2.5)
        opened = clients.open(PROCESSES * 3)
        assert opened[idle] >= 2, (opened, clients.count())


def test_no_process_waits_for_others_at_a_socket_of_its_own(tmp_path: Path) -> None:
    # Longer than a client waits.
    settings = (f"DEFERRED_SECONDS={2 * PATIENCE}", ALL_IN_USE)
    port = programs.free_port()
    with serving(tmp_path, *settings, processes=2, port=port) as clients:
        clients.open(9)
        assert len(clients) >= 11

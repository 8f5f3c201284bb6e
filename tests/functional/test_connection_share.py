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
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import programs

pytestmark = pytest.mark.embedded

# How long a process leaves a connection to another one here: on a busy machine that may
# not run for a while.
LEAVES_SECONDS = 2
PATIENCE = 60
PROCESSES = 3
PROGRAM = f"""
import os
from gunicorn.app.base import BaseApplication
from placement_foundation.serving import worker

def answer(environment, start_response):
    body = b"process %9d" % os.getpid()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]

class Server(BaseApplication):
    def load_config(self):
        self.cfg.set("bind", "unix:socket")
        self.cfg.set("workers", {PROCESSES})
        self.cfg.set("threads", 2)
        self.cfg.set("worker_class", worker.Worker)
        if "control_socket_disable" in self.cfg.settings:
            self.cfg.set("control_socket_disable", True)

    def load(self):
        return answer

worker.OTHERS_SECONDS = {LEAVES_SECONDS}
Server().run()
"""


class Clients:
    """Connections that stay open, by the process that answers on them."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._open: list[tuple[int, socket.socket]] = []

    def open(self, count: int) -> None:
        """Open so many at once, and find out which process has each."""
        made = []
        for _ in range(count):
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(PATIENCE)
            client.connect(self._address)
            made.append(client)
        self._open += [(ask(client), client) for client in made]

    def close(self, which: list[int]) -> None:
        """Close some of them, by number."""
        for number in which:
            self._open[number][1].close()
        self._open = [
            each for number, each in enumerate(self._open) if number not in which
        ]
        # The processes notice.
        time.sleep(0.3)

    def forget(self, process: int) -> None:
        """Close those of a process that was killed."""
        self.close([n for n, each in enumerate(self._open) if each[0] == process])

    def close_all(self) -> None:
        self.close(list(range(len(self))))

    def __len__(self) -> int:
        return len(self._open)

    def count(self) -> Counter[int]:
        """Return how many each process has."""
        return Counter(process for process, _ in self._open)

    def open_on_each(self) -> None:
        """Open more until every process has some; it may have to start."""
        end = time.monotonic() + PATIENCE
        while len(self.count()) < PROCESSES:
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
    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    answer = b""
    while b"process " not in answer or len(answer.partition(b"process ")[2]) < 9:
        data = client.recv(4096)
        assert data, answer
        answer += data
    return int(answer.partition(b"process ")[2])


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[Clients]:
    """Give clients of a server whose processes all accept connections."""
    with contextlib.chdir(tmp_path):
        # The path of a socket is short.
        server = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], env=programs.environment(tmp_path)
        )
        try:
            end = time.monotonic() + PATIENCE
            while not Path("socket").exists():
                assert time.monotonic() < end
                time.sleep(0.05)
            clients = Clients("socket")
            clients.open_on_each()
            yield clients
            clients.close_all()
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(PATIENCE) == 0


def test_connections_that_come_at_once_are_shared(clients: Clients) -> None:
    clients.open_missing()
    for _ in range(3):
        assert clients.is_level(), clients.count()
        clients.open(8)
    assert clients.is_level(), clients.count()


def test_a_process_that_hangs_is_left_connections_for_a_while_only(
    clients: Clients,
) -> None:
    clients.open(PROCESSES * 2)
    hanging = min(clients.count())
    # It has the fewest.
    clients.forget(hanging)
    before = clients.count()
    os.kill(hanging, signal.SIGSTOP)
    try:
        clients.open(2)
    finally:
        os.kill(hanging, signal.SIGCONT)
    assert clients.count().total() == before.total() + 2
    # It gets those that come now, until it has as many.
    clients.open(before.total())
    assert clients.is_level(), clients.count()


def test_whatever_happens_the_next_connections_make_it_level(clients: Clients) -> None:
    seed = random.randrange(10**9)
    print("seed", seed)
    chance = random.Random(seed)
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
                clients.forget(killed)
        clients.open_on_each()
        clients.open_missing()
        assert clients.is_level(), (seed, clients.count())

"""What web servers do to small requests: ``python -m benchmarks.servers --help``.

The same service behind ``placement-api``, uWSGI and Granian, with one process, two and
four: requests a second, how long they take for some numbers of clients, how much
processor time the server spends on each, and memory; and how long innocent clients wait
while others hold connections and send slowly.
uWSGI and Granian must be installed: ``pip install uwsgi granian``.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import client, cloud, memory
from benchmarks.cloud import uuid_of
from placement.db import migration
from placement.objects import standard_name
from placement.objects.ledger import Ledger
from placement_foundation import option
from placement_foundation.database import storage

BIN = Path(sys.executable).parent
THREADS = 8
MODULE = "placement.wsgi.api:application"
# How to start each server; ``port`` and ``processes`` are filled in.
SERVERS = {
    "placement-api": (
        f"{BIN}/placement-api --port {{port}} --workers {{processes}} "
        "--config-file {settings}"
    ),
    "uwsgi": (
        f"{BIN}/uwsgi --http11-socket 127.0.0.1:{{port}} --processes {{processes}} "
        f"--threads {THREADS} --module {MODULE} --master --lazy-apps --need-app "
        f"--die-on-term --disable-logging --buffer-size 65535 --home {sys.prefix}"
    ),
    "granian": (
        f"{BIN}/granian --interface wsgi --port {{port}} --workers {{processes}} "
        f"--blocking-threads {THREADS} --no-ws --respawn-failed-workers {MODULE}"
    ),
}
READ = f"/resource_providers/{uuid_of('host0')}/inventories"
HEADERS = "".join(f"{name}: {value}\r\n" for name, value in client.HEADERS.items())
# The data that slow clients send before they fall silent.
SLOW = {
    "nothing": "",
    "half a header": f"GET {READ} HTTP/1.1\r\nhost: localhost\r\nx-",
    "half a body": (
        f"PUT /allocations/{uuid_of('slow')} HTTP/1.1\r\nhost: localhost\r\n{HEADERS}"
        "content-length: 1000\r\n\r\n{"
    ),
}
# How long an innocent client waits for its answer, in seconds.
PATIENCE = 5.0


@dataclasses.dataclass(frozen=True)
class Running:
    """A server that runs: its port, and the first of its processes."""

    port: int
    process: int


def main() -> int:
    """Measure each server in turn, and print a line for each case."""
    options = _parse()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    with _planted(options.hosts) as directory:
        for processes in options.processes:
            for name in options.servers:
                with _running(name, processes, directory) as server:
                    _measure(name, processes, server, options)
        for name in options.servers:
            with _running(name, 2, directory) as server:
                _hold(name, server, options.slow)
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.servers", description=__doc__
    )
    parser.add_argument("--hosts", type=int, default=1_000, help="%(default)s")
    parser.add_argument("--seconds", type=float, default=4, help="%(default)s")
    parser.add_argument(
        "--slow", type=int, default=300, help="connections that are held (%(default)s)"
    )
    for name, default in (("processes", [1, 2, 4]), ("clients", [1, 8, 64])):
        parser.add_argument(
            f"--{name}", type=int, nargs="+", default=default, help="%(default)s"
        )
    parser.add_argument(
        "--servers", nargs="+", choices=SERVERS, default=list(SERVERS), help="all"
    )
    return parser.parse_args()


@contextlib.contextmanager
def _planted(hosts: int) -> Iterator[Path]:
    """Yield a directory with a SQLite database, and settings that name it."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        url = f"sqlite:///{directory}/placement.db"
        database = storage.connect(option.DatabaseSettings(url))
        migration.SCHEMA.upgrade(database)
        standard_name.synchronise(Ledger(database))
        cloud.plant(database, cloud.flat(hosts))
        database.engine.dispose()
        (directory / "placement.conf").write_text(client.SETTINGS.format(url=url))
        yield directory


@contextlib.contextmanager
def _running(name: str, processes: int, directory: Path) -> Iterator[Running]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = SERVERS[name].format(
        port=port, processes=processes, settings=directory / "placement.conf"
    )
    server = subprocess.Popen(
        command.split(),
        env={**os.environ, "OS_PLACEMENT_CONFIG_DIR": str(directory)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        client.wait_for(port)
        yield Running(port, server.pid)
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _measure(
    name: str, processes: int, server: Running, options: argparse.Namespace
) -> None:
    # The first requests load the forest, in each process.
    asyncio.run(_send_all(server.port, 8 * processes, 1))
    for clients in options.clients:
        before = memory.processor(server.process)
        times = sorted(asyncio.run(_send_all(server.port, clients, options.seconds)))
        used = (memory.processor(server.process) - before) / len(times) * 1000
        half, most = (times[int(len(times) * part)] * 1000 for part in (0.5, 0.99))
        print(
            f"{name:14} {processes} processes {clients:3} clients "
            f"{len(times) / options.seconds:8.0f} a second  median {half:7.2f} ms  "
            f"99th {most:7.2f} ms  processor {used:5.2f} ms each",
            flush=True,
        )
    print(
        f"{name:14} {processes} processes {memory.tree(server.process):.0f} MiB",
        flush=True,
    )


async def _send_all(port: int, clients: int, seconds: float) -> list[float]:
    """Send with some clients at once until the time is up; return the times."""
    end = time.monotonic() + seconds
    times_by_client = await asyncio.gather(*(_send(port, end) for _ in range(clients)))
    return [each for times in times_by_client for each in times]


async def _send(port: int, end: float) -> list[float]:
    request = f"GET {READ} HTTP/1.1\r\nhost: localhost\r\n{HEADERS}\r\n".encode()
    times = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < end:
        begun = time.monotonic()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise ValueError(f"an unexpected answer: {head.decode()}")
        lines = head.lower().split(b"\r\n")
        [length] = [line[15:] for line in lines if line.startswith(b"content-length:")]
        await reader.readexactly(int(length))
        times.append(time.monotonic() - begun)
        if b"connection: close" in lines:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    return times


def _hold(name: str, server: Running, count: int) -> None:
    """Print how long a client waits for an answer while others hold connections."""
    waits = []
    for sent in SLOW.values():
        with contextlib.ExitStack() as stack:
            for _ in range(count):
                address = "127.0.0.1", server.port
                held = stack.enter_context(socket.create_connection(address))
                held.sendall(sent.encode())
            time.sleep(0.5)
            waits.append(_longest_wait(server.port))
        time.sleep(0.5)
    listed = "  ".join(
        f"{what}: " + (f"{wait * 1000:.0f} ms" if wait < PATIENCE else "none")
        for what, wait in zip(SLOW, waits, strict=True)
    )
    print(f"{name:14} {count} that have sent  {listed}", flush=True)


def _longest_wait(port: int) -> float:
    """Return how long the slowest of ten requests took."""
    longest = 0.0
    request = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    for _ in range(10):
        begun = time.monotonic()
        try:
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
                connection.sendall(request)
                if not connection.recv(1):
                    return PATIENCE
        except OSError:
            return PATIENCE
        longest = max(longest, time.monotonic() - begun)
    return longest


if __name__ == "__main__":
    sys.exit(main())

"""What heavy and slow readers cost claims: ``python -m benchmarks.crowd --help``.

Clients place for some time by themselves, and then again beside readers that request
explanations, capacity and the fleet without a pause, and, with ``--slow``, others that
read the fleet a few bytes at a time, without a proxy. Over HTTP, on PostgreSQL.
"""

import argparse
import collections
import http.client
import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from benchmarks import client, placing

# No host has so much memory: each one is examined for each constraint.
HEAVY = (
    "/ledger/v1/explanation?resources=VCPU:4,MEMORY_MB:99999999,DISK_GB:10&seconds=10",
    "/ledger/v1/capacity?resources1=VCPU:1&resources2=MEMORY_MB:1024&group_policy=none",
    "/ledger/v1/fleet",
)
FLEET = "/ledger/v1/fleet"
SIP = 256


def main() -> int:
    """Let clients place alone and then in a crowd, and print both results."""
    options = _parse()
    with (
        placing.planted(options.server, options.hosts) as url,
        client.serving(url, options.workers) as port,
        ThreadPoolExecutor(options.heavy + options.slow) as others,
        multiprocessing.get_context("spawn").Pool(options.clients) as pool,
    ):
        # The first questions load the forest.
        _place(options, port, pool, seconds=2)
        alone = _run(options, port, pool)
        _print(options, "alone", *alone)
        crowd = _run(options, port, pool, others)
        _print(options, "in a crowd", *crowd)
    ratio = _percentile(crowd[0], "claiming") / _percentile(alone[0], "claiming")
    print(f"claims take {ratio:.1f} times as long, 99th percentile")
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.crowd", description=__doc__
    )
    parser.add_argument("--server", default=placing.SERVER, help="%(default)s")
    for name, default in (
        ("hosts", 2_000),
        ("workers", 2),
        ("clients", 4),
        ("heavy", 12),
        ("slow", 0),
        ("seconds", 20),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help="%(default)s")
    parser.add_argument(
        "--pause",
        type=float,
        default=0.1,
        help="seconds after a 503; Retry-After says 2 (%(default)s: impatient clients)",
    )
    return parser.parse_args()


Placed = Sequence[dict[str, Any]]
Statuses = collections.Counter[int]


def _run(
    options: argparse.Namespace, port: int, pool: Any, others: Executor | None = None
) -> tuple[Placed, Statuses]:
    """Run all clients at once; return the results of placing and of reading.

    Readers mostly wait, so threads suffice for them.
    """
    seconds = options.seconds
    crowd = []
    if others:
        heavy = (
            others.submit(ask_heavily, port, seconds, n, options.pause)
            for n in range(options.heavy)
        )
        slow = [
            others.submit(read_slowly, port, seconds, options.pause)
            for _ in range(options.slow)
        ]
        crowd = [*heavy, *slow]
    placed = _place(options, port, pool, seconds)
    return placed, sum((each.result() for each in crowd), Statuses())


def _place(options: argparse.Namespace, port: int, pool: Any, seconds: int) -> Placed:
    work = [(port, seconds, number, 1, False) for number in range(options.clients)]
    placed: Placed = pool.starmap(placing.claim_candidates, work)
    return placed


def ask_heavily(port: int, seconds: int, number: int, pause: float) -> Statuses:
    """Send heavy requests until the time is up; return the statuses."""
    statuses: Statuses = Statuses()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        path = HEAVY[number % len(HEAVY)]
        status, _ = client.ask_over(connection, "GET", path, None)
        statuses[status] += 1
        if status != 200:
            time.sleep(pause)
    connection.close()
    return statuses


def read_slowly(port: int, seconds: int, pause: float) -> Statuses:
    """Read the fleet, line by line, at a few bytes a second; return the statuses."""
    statuses: Statuses = Statuses()
    end = time.monotonic() + seconds
    headers = {**client.HEADERS, "accept": "application/x-ndjson"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    request = f"GET {FLEET} HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n"
    while time.monotonic() < end:
        with socket.create_connection(("127.0.0.1", port)) as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.settimeout(30)
            reader.sendall(request.encode())
            status = int(reader.recv(SIP).split()[1])
            statuses[status] += 1
            while status == 200 and time.monotonic() < end:
                reader.recv(SIP)
                time.sleep(0.1)
        time.sleep(pause)
    return statuses


def _percentile(placed: Placed, name: str, part: float = 0.99) -> float:
    times = sorted(value for each in placed for value in each[name])
    return float(times[int(len(times) * part)])


def _print(
    options: argparse.Namespace, when: str, placed: Placed, others: Statuses
) -> None:
    statuses = sum((each["statuses"] for each in placed), Statuses())
    print(
        f"{when}: {options.hosts} hosts, {options.workers} workers, {options.clients} "
        f"clients that place, {options.seconds} s, load {os.getloadavg()[0]:.1f}"
    )
    for name in ("searching", "claiming"):
        half, most = (_percentile(placed, name, part) for part in (0.5, 0.99))
        print(f"  {name}: median {half * 1000:.1f} ms, 99th {most * 1000:.1f} ms")
    print(f"  placements: {dict(sorted(statuses.items()))}")
    print(f"  heavy and slow: {dict(sorted(others.items()))}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

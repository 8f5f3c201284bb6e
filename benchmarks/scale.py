"""How far it goes: ``python -m benchmarks.scale --help``.

A large cloud on PostgreSQL, served by some numbers of processes: how long they take to
start, how much memory they have, and how long requests take while clients claim.
"""

import argparse
import http.client
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable
from typing import Any

from benchmarks import client, memory, placing
from benchmarks.cloud import uuid_of
from benchmarks.question import CANDIDATES, SMALL

# The requests, and how many times each is sent.
QUESTIONS = {
    "candidates, limit=1": (f"{CANDIDATES}?{SMALL}&limit=1", 50),
    "candidates, limit=10": (f"{CANDIDATES}?{SMALL}&limit=10", 50),
    "candidates, limit=1000": (f"{CANDIDATES}?{SMALL}&limit=1000", 20),
    "candidates, nothing fits": (f"{CANDIDATES}?resources=VCPU:60&limit=1000", 50),
    "one provider by name": ("/resource_providers?name=host7", 50),
    "inventories": (f"/resource_providers/{uuid_of('host7')}/inventories", 50),
    "all resource providers": ("/resource_providers", 3),
    "the fleet": ("/ledger/v1/fleet", 3),
}


def main() -> int:
    """Measure with each number of processes, and print the results."""
    options = _parse()
    with placing.planted(options.server, options.hosts) as url:
        for workers in options.workers:
            _measure(options, url, workers)
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale", description=__doc__
    )
    parser.add_argument("--server", default=placing.SERVER, help="%(default)s")
    for name, default in (("hosts", 100_000), ("clients", 2), ("seconds", 20)):
        parser.add_argument(f"--{name}", type=int, default=default, help="%(default)s")
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[2, 8], help="%(default)s"
    )
    return parser.parse_args()


def _measure(options: argparse.Namespace, url: str, workers: int) -> None:
    own = memory.children(os.getpid())
    begun = time.monotonic()
    with client.serving(url, workers) as port:
        print(
            f"{options.hosts} hosts, {workers} workers: it answers after "
            f"{time.monotonic() - begun:.1f} s, load {os.getloadavg()[0]:.1f}"
        )
        [server] = memory.children(os.getpid()) - own
        print(f"memory at first: {memory.tree(server):.0f} MiB")
        with multiprocessing.get_context("spawn").Pool(options.clients + 1) as pool:
            work = [
                (port, options.seconds, number, 1, False)
                for number in range(options.clients)
            ]
            claiming = pool.starmap_async(placing.claim_candidates, work)
            while not claiming.ready():
                for name, (path, times) in QUESTIONS.items():
                    if not claiming.ready():
                        _print(name, _ask(port, path, times))
            done = claiming.get()
        for name in ("searching", "claiming"):
            took = [value for each in done for value in each[name]]
            _print(f"{name}, {options.clients} clients", took)
        print(f"memory at last: {memory.tree(server):.0f} MiB", flush=True)


def _ask(port: int, path: str, times: int) -> list[float]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    took = []
    for _ in range(times):
        begun = time.monotonic()
        status, _ = client.ask_over(connection, "GET", path, None)
        took.append(time.monotonic() - begun)
        if status != 200:
            raise SystemExit(f"{path}: {status}")
    connection.close()
    return took


def _print(name: str, took: Iterable[float]) -> None:
    times: list[Any] = sorted(took)
    half, most = (times[int(len(times) * part)] * 1000 for part in (0.5, 0.99))
    print(f"  {name:28} median {half:8.1f} ms  99th {most:8.1f} ms", flush=True)


if __name__ == "__main__":
    sys.exit(main())

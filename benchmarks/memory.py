"""Whether workers grow under load: ``python -m benchmarks.memory --help``.

Clients search, claim, release and change inventories at random, on PostgreSQL.
Meanwhile the memory of each worker is printed. The ledger soon keeps its size. A worker
that is well stops growing when everything has been used once: compare the last two
thirds, not the beginning.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import random
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from benchmarks import client
from benchmarks.cloud import uuid_of
from benchmarks.placing import RESOURCES, planted
from benchmarks.question import CANDIDATES
from benchmarks.writer import claim

KIB = 1024
# The limits in the questions: a cache must not grow with their number.
LIMITS = (1, 10, 100, 1000)
# The most consumers of a client: the amounts in use must not grow either.
CONSUMERS = 200


def main() -> int:
    """Let clients work for some time, and print how large the workers are."""
    options = _parse()
    own = children(os.getpid())
    with (
        planted(options.server, options.hosts) as url,
        client.serving(url, options.workers) as port,
    ):
        [server] = children(os.getpid()) - own
        with multiprocessing.get_context("spawn").Pool(options.clients) as pool:
            end = time.time() + options.seconds
            work = [
                (port, end, number, options.hosts) for number in range(options.clients)
            ]
            counts = pool.starmap_async(_use, work)
            sizes = _watch(server, options.every, options.seconds)
            answered = sum(counts.get())
    print(f"{answered} requests")
    _print_growth(sizes)
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.memory", description=__doc__
    )
    parser.add_argument(
        "--server",
        default="postgresql+psycopg://postgres@127.0.0.1/postgres",
        help="a database on a server, on which another one is created (%(default)s)",
    )
    for name, default in (
        ("hosts", 5_000),
        ("workers", 3),
        ("clients", 6),
        ("seconds", 1_800),
        ("every", 30),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help="%(default)s")
    return parser.parse_args()


def children(process: int) -> set[int]:
    """Return the processes that a process has started, and that still run."""
    listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return set(map(int, listed))


def _watch(server: int, every: int, seconds: int) -> list[dict[int, float]]:
    """Print the memory of each worker now and then, in MiB, and return it."""
    sizes = []
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        time.sleep(every)
        sizes.append({worker: _resident(worker) for worker in sorted(children(server))})
        listed = "  ".join(f"{size:7.1f}" for size in sizes[-1].values())
        print(f"{time.monotonic() - began:6.0f} s  {listed} MiB", flush=True)
    return sizes


def _resident(process: int) -> float:
    """Return the memory of a process, in MiB.

    Shared pages count from the beginning: a copy at the first write to one is no
    growth.
    """
    return _sum(process, "Rss:")


def tree(process: int) -> float:
    """Return the memory of a process and those that it has started, in MiB.

    Pages that several of them share count once.
    """
    below = sum(tree(child) for child in children(process))
    return _sum(process, "Pss:") + below


def processor(process: int) -> float:
    """Return the processor time of a process and those it has started, in seconds."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(processor(child) for child in children(process))


def _sum(process: int, beginning: str) -> float:
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    listed = [line.split()[1] for line in rollup if line.startswith(beginning)]
    return sum(map(int, listed)) / KIB


def _print_growth(sizes: list[dict[int, float]]) -> None:
    later = sizes[len(sizes) // 3 :]
    for worker, size in later[-1].items():
        if worker in later[0]:
            print(
                f"worker {worker}: {size:.1f} MiB, "
                f"{size - later[0][worker]:+.1f} since a third of the time"
            )


def _use(port: int, end: float, number: int, hosts: int) -> int:
    """Use the service until the time is up; return how many requests that were."""
    user = _User(port, number, hosts)
    while time.time() < end:
        user.act()
    return user.answered


class _User:
    def __init__(self, port: int, number: int, hosts: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._rng = random.Random(number)
        self._hosts = hosts
        self._consumers: list[str] = []
        self.answered = 0

    def act(self) -> None:
        """Send a random request, as users do."""
        acts = {self._ask: 5, self._claim: 4, self._release: 3, self._look: 3}
        acts[self._change] = 1
        self._rng.choices([*acts], [*acts.values()])[0]()

    def _call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        status, text = client.ask_over(self._connection, method, path, body)
        if status >= 500:
            raise RuntimeError(f"{method} {path}: {status} {text!r}")
        self.answered += 1
        return status, json.loads(text) if text else None

    def _host(self) -> str:
        return uuid_of(f"host{self._rng.randrange(self._hosts)}")

    def _ask(self) -> None:
        limit = self._rng.choice(LIMITS)
        amount = self._rng.randrange(1, 4096)
        query = f"{CANDIDATES}?limit={limit}&resources=VCPU:1,MEMORY_MB:{amount}"
        if self._rng.random() < 0.5:
            query += f"&in_tree={self._host()}"
        self._call("GET", query)

    def _claim(self) -> None:
        if len(self._consumers) >= CONSUMERS:
            self._release()
        consumer = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        body = claim(self._host(), RESOURCES)
        status, _ = self._call("PUT", f"/allocations/{consumer}", body)
        if status == 204:
            self._consumers.append(consumer)

    def _release(self) -> None:
        if self._consumers:
            at = self._rng.randrange(len(self._consumers))
            self._call("DELETE", f"/allocations/{self._consumers.pop(at)}")

    def _look(self) -> None:
        host = self._host()
        parts = ("", "/inventories", "/usages", "/traits", "/allocations")
        self._call("GET", f"/resource_providers/{host}{self._rng.choice(parts)}")
        if self._rng.random() < 0.2:
            self._call("GET", f"/resource_providers?in_tree={host}")
            self._call("GET", "/usages?project_id=writers")

    def _change(self) -> None:
        path = f"/resource_providers/{self._host()}/inventories"
        _, document = self._call("GET", path)
        for inventory in document["inventories"].values():
            inventory["reserved"] = self._rng.randrange(2)
        self._call("PUT", path, document)


if __name__ == "__main__":
    sys.exit(main())

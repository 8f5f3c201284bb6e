"""How many placements a second: ``python -m benchmarks.placing --help``.

Clients get candidates and claim one of them, or place some consumers in one
request, over HTTP, on PostgreSQL.
"""

import argparse
import collections
import contextlib
import http.client
import itertools
import json
import multiprocessing
import os
import random
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from benchmarks import client, cloud
from benchmarks.question import CANDIDATES
from benchmarks.writer import claim
from placement.db import migration, models
from placement.objects import standard_name
from placement.objects.ledger import Ledger
from placement_foundation import option
from placement_foundation.database import storage

SERVER = "postgresql+psycopg://postgres@127.0.0.1/postgres"
RESOURCES = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 5}
WANTED = "resources=" + ",".join(
    f"{name}:{amount}" for name, amount in RESOURCES.items()
)
QUERY = f"{CANDIDATES}?{WANTED}"
# The preferences of a placement.
PREFER = [
    {"free": "VCPU", "weight": 1},
    {"free": "MEMORY_MB", "weight": 1},
    {"free": "DISK_GB", "weight": -1},
    {"trait": "HW_CPU_X86_AVX2", "weight": 2},
    {"trait": "HW_CPU_X86_SSE", "weight": 1},
]


def main() -> int:
    """Let clients place for some time, and print the results."""
    options = _parse()
    with (
        planted(options.server, options.hosts) as url,
        client.serving(url, options.workers) as port,
        multiprocessing.get_context("spawn").Pool(options.clients) as pool,
    ):
        done: dict[str, list[dict[str, Any]]] = {way: [] for way in options.ways}
        # In turn, since the speed of most machines changes from minute to minute.
        for turn, way in itertools.product(range(options.turns), options.ways):
            place = claim_candidates if way == "candidates" else _place
            work = [
                (port, options.seconds, seed, options.consumers, options.prefer)
                for seed in range(turn * options.clients, (turn + 1) * options.clients)
            ]
            done[way] += pool.starmap(place, work)
        for way, seen in done.items():
            print(f"\n{way}:", flush=True)
            _print(options, seen, _missing(url, seen))
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.placing", description=__doc__
    )
    parser.add_argument(
        "--server",
        default=SERVER,
        help="a database on a server, on which another one is created (%(default)s)",
    )
    for name, default in (
        ("hosts", 5_000),
        ("workers", 2),
        ("clients", 8),
        ("seconds", 20),
        ("turns", 1),
        ("consumers", 1),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help="%(default)s")
    parser.add_argument(
        "--ways",
        nargs="+",
        choices=["candidates", "placements"],
        default=["candidates"],
        help="candidates and then a claim, or placements of as many consumers; in "
        "turn, so many seconds each (%(default)s)",
    )
    parser.add_argument(
        "--prefer",
        action="store_true",
        help=f"place with {len(PREFER)} preferences, considering 500 hosts",
    )
    return parser.parse_args()


@contextlib.contextmanager
def planted(server_url: str, hosts: int) -> Iterator[str]:
    """Yield the URL of a database with a cloud in it, and remove it afterwards."""
    server = sa.create_engine(server_url, isolation_level="AUTOCOMMIT")
    name = f"placement_benchmark_{uuid.uuid4().hex}"
    with server.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    url = sa.make_url(server_url).set(database=name).render_as_string(False)
    try:
        database = storage.connect(option.DatabaseSettings(url))
        migration.SCHEMA.upgrade(database)
        standard_name.synchronise(Ledger(database))
        cloud.plant(database, cloud.flat(hosts))
        with database.engine.begin() as connection:
            connection.execute(sa.text("ANALYZE"))
        database.engine.dispose()
        yield url
    finally:
        with server.connect() as connection:
            connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
        server.dispose()


def _place(
    port: int, seconds: int, number: int, consumers: int, prefer: bool
) -> dict[str, Any]:
    """Place consumers until the time is up; return times, statuses and consumers."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    placing: list[float] = []
    statuses: collections.Counter[int] = collections.Counter()
    acknowledged: list[str] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        uuids = [str(uuid.uuid4()) for _ in range(consumers)]
        body: dict[str, Any] = {
            "query": WANTED,
            "consumers": uuids,
            "project_id": "blue",
            "user_id": "ann",
            "consumer_type": "INSTANCE",
        }
        if prefer:
            body["prefer"] = PREFER
        begun = time.monotonic()
        path = "/ledger/v1/placements"
        status, _ = client.ask_over(connection, "POST", path, body)
        placing.append(time.monotonic() - begun)
        statuses[status] += 1
        if status == 201:
            acknowledged += uuids
    return {
        "placing": placing,
        "statuses": statuses,
        "acknowledged": acknowledged,
    }


def claim_candidates(
    port: int, seconds: int, number: int, consumers: int, prefer: bool
) -> dict[str, Any]:
    """Get candidates and claim until the time is up; return the same."""
    rng = random.Random(number)
    connection = http.client.HTTPConnection("127.0.0.1", port)
    searching: list[float] = []
    claiming: list[float] = []
    statuses: collections.Counter[int] = collections.Counter()
    acknowledged = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        status, document = client.ask_over(connection, "GET", f"{QUERY}&limit=10", None)
        searching.append(time.monotonic() - begun)
        if status != 200:
            statuses[status] += 1
            continue
        candidates = json.loads(document)["allocation_requests"]
        (provider,) = rng.choice(candidates)["allocations"]
        consumer = str(uuid.uuid4())
        begun = time.monotonic()
        path, body = f"/allocations/{consumer}", claim(provider, RESOURCES)
        status, _ = client.ask_over(connection, "PUT", path, body)
        claiming.append(time.monotonic() - begun)
        statuses[status] += 1
        if status == 204:
            acknowledged.append(consumer)
    return {
        "searching": searching,
        "claiming": claiming,
        "statuses": statuses,
        "acknowledged": acknowledged,
    }


def _missing(url: str, done: list[dict[str, Any]]) -> int:
    """Return how many claims that were acknowledged are not in the database."""
    database = storage.connect(option.DatabaseSettings(url))
    with database.engine.connect() as connection:
        query = sa.select(models.Allocation.consumer_id).distinct()
        stored = set(connection.execute(query).scalars())
    database.engine.dispose()
    return sum(
        consumer not in stored for each in done for consumer in each["acknowledged"]
    )


def _print(
    options: argparse.Namespace, done: list[dict[str, Any]], missing: int
) -> None:
    statuses = sum((each["statuses"] for each in done), collections.Counter[int]())
    print(
        f"{options.hosts} hosts, {options.workers} workers, {options.clients} clients, "
        f"{options.turns} times {options.seconds} s, load {os.getloadavg()[0]:.1f}"
    )
    placed = sum(len(each["acknowledged"]) for each in done)
    print(f"placements a second: {placed / options.seconds / options.turns:.1f}")
    for name in sorted(done[0].keys() - {"statuses", "acknowledged"}):
        times = sorted(value for each in done for value in each[name])
        half, most = (times[int(len(times) * part)] for part in (0.5, 0.99))
        print(f"{name}: median {half * 1000:.1f} ms, 99th {most * 1000:.1f} ms")
    print("statuses:", dict(sorted(statuses.items())))
    print(f"acknowledged claims that are missing: {missing}")


if __name__ == "__main__":
    sys.exit(main())

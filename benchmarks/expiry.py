"""What removing old entries costs claims: ``python -m benchmarks.expiry --help``.

The journal gets many entries that are too old. Clients search and claim, and one
follows the feed, for some time while these are left alone, and then while the service
removes them. Over HTTP, on PostgreSQL.
"""

import argparse
import datetime
import http.client
import json
import multiprocessing
import os
import sys
import time
import uuid
from typing import Any

import sqlalchemy as sa

from benchmarks import client, placing
from benchmarks.cloud import uuid_of
from placement.db import models
from placement.model.entry import EntryType
from placement.model.journal import Document, render_time, token_of
from placement.objects.journal import filed_entry, filing
from placement_foundation import option
from placement_foundation.database import storage
from placement_foundation.database.storage import Database

OLD = datetime.datetime(2020, 1, 1)
CHUNK = 20_000


def main() -> int:
    """Let clients work, without expiry and with it, and print both."""
    options = _parse()
    with placing.planted(options.server, options.hosts) as url:
        database = storage.connect(option.DatabaseSettings(url))
        begun = time.monotonic()
        size = _fill(database, options.entries)
        print(
            f"{options.entries} entries in {time.monotonic() - begun:.0f} s, "
            f"{size / options.entries:.0f} bytes each",
            flush=True,
        )
        _postpone(database, datetime.timedelta(days=1))
        with (
            client.serving(url, options.workers) as port,
            multiprocessing.get_context("spawn").Pool(options.clients + 1) as pool,
        ):
            _work(options, pool, port, seconds=3)
            _print("alone", _work(options, pool, port, options.seconds))
            _postpone(database, -datetime.timedelta(days=1))
            while (before := _removed(database)) == 0:
                time.sleep(0.2)
            _print("expiring", _work(options, pool, port, options.seconds))
            removed = _removed(database) - before
            print(f"{removed} entries removed in {options.seconds} s beside the claims")
        database.engine.dispose()
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.expiry", description=__doc__
    )
    parser.add_argument("--server", default=placing.SERVER, help="%(default)s")
    for name, default in (
        ("entries", 1_000_000),
        ("hosts", 1_000),
        ("workers", 2),
        ("clients", 4),
        ("seconds", 30),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help="%(default)s")
    return parser.parse_args()


def _fill(database: Database, count: int) -> int:
    """Store old entries of claims; return how many bytes they take."""
    tables = (models.JOURNAL_ENTRIES, models.JOURNAL_MENTIONS)
    with database.engine.begin() as connection:
        driver: Any = connection.connection.driver_connection
        for start in range(1, count + 1, CHUNK):
            filed = {
                position: _document(position)
                for position in range(start, min(start + CHUNK, count + 1))
            }
            rows = (
                filed_entry.row_of(place, OLD, each).values()
                for place, each in filed.items()
            )
            _copy(driver, models.JOURNAL_ENTRIES, rows)
            mentions = (
                (mention, place)
                for place, each in filed.items()
                for mention in filed_entry.mentions_of(each)
            )
            _copy(driver, models.JOURNAL_MENTIONS, mentions)
        token = token_of(filed[count]["id"])
        filing.set_state(connection, position=count, token=token)
    with database.engine.connect() as connection:
        sizes = (sa.func.pg_total_relation_size(table.name) for table in tables)
        return sum(connection.scalar(sa.select(size)) or 0 for size in sizes)


def _document(position: int) -> Document:
    """Return the entry of a claim."""
    host = uuid_of(f"host{position % 1000}")
    amounts = {"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 20}
    owner = {"project_id": uuid_of("project"), "user_id": uuid_of("user")}
    consumer = str(uuid.uuid4())
    return {
        "request": f"PUT /allocations/{consumer}",
        "request_id": f"req-{uuid.uuid4()}",
        **owner,
        "id": str(uuid.uuid4()),
        "type": EntryType.ALLOCATIONS_CHANGED,
        "subject": consumer,
        "before": {},
        "after": {host: amounts},
        "generation": 1,
        "root": host,
        "names": {host: f"compute-{position % 1000}"},
        "consumer": {**owner, "consumer_type": "INSTANCE"},
        "time": render_time(OLD),
    }


def _copy(driver: Any, table: sa.Table, rows: Any) -> None:
    columns = ", ".join(column.name for column in table.columns)
    with (
        driver.cursor() as cursor,
        cursor.copy(f"COPY {table.name} ({columns}) FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row(tuple(row))


def _postpone(database: Database, by: datetime.timedelta) -> None:
    """Store a future time as that of the last removal of old entries."""
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    database.write(lambda connection: filing.set_state(connection, tidied=now + by))


def _removed(database: Database) -> int:
    """Return how many entries were removed so far."""
    return database.read(lambda connection: filing.load_state(connection).expired)


def _work(
    options: argparse.Namespace, pool: Any, port: int, seconds: int
) -> dict[str, list[float]]:
    """Return the time of each request in seconds, by its purpose."""
    work = [(port, seconds, number, 1, False) for number in range(options.clients)]
    following = pool.apply_async(_follow, (port, seconds))
    done: list[dict[str, Any]] = pool.starmap(placing.claim_candidates, work)
    times = {
        what: [value for each in done for value in each[what]]
        for what in ("searching", "claiming")
    }
    return {**times, "following": following.get()}


def _follow(port: int, seconds: int) -> list[float]:
    """Read the feed repeatedly; return the time of each page."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    times, cursor = [], "now"
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        path = f"/ledger/v1/changes?since={cursor}"
        status, document = client.ask_over(connection, "GET", path, None)
        times.append(time.monotonic() - begun)
        if status != 200:
            raise RuntimeError(f"{path}: {status}")
        cursor = json.loads(document)["cursor"]
        time.sleep(0.05)
    return times


def _print(when: str, done: dict[str, list[float]]) -> None:
    for what, unsorted in done.items():
        times = sorted(unsorted)
        half, most = (times[int(len(times) * part)] * 1000 for part in (0.5, 0.99))
        print(
            f"{when}, {what}: {len(times)} requests, median {half:.1f} ms, 99th "
            f"{most:.1f} ms, longest {times[-1] * 1000:.1f} ms, "
            f"load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())

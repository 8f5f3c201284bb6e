"""What the journal costs: ``python -m benchmarks.journal --help``.

New consumers claim in turn with and without it, in this process, on PostgreSQL; then
a page of the feed and the history of a consumer are read.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable

from benchmarks import client, placing
from benchmarks.client import Send
from benchmarks.question import Claim
from placement_foundation import option
from placement_foundation.database import storage
from placement_foundation.database.storage import Database

HOSTS = 1_000
FEED = "/ledger/v1/changes?since=oldest&limit=1000"
HISTORY = "/ledger/v1/history?consumer="
# Elapsed and processor time of each request, in milliseconds.
Times = list[tuple[float, float]]


def main() -> int:
    """Measure, and print the figures."""
    options = _parse()
    with placing.planted(options.server, HOSTS) as url:
        settings = option.DatabaseSettings(url)
        one, other = storage.connect(settings), storage.connect(settings)
        for name, times in measure(one, other, options.times).items():
            _print(name, times)
        for database in (one, other):
            database.engine.dispose()
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.journal", description=__doc__
    )
    parser.add_argument("--server", default=placing.SERVER, help="%(default)s")
    parser.add_argument(
        "--times", type=int, default=1_000, help="claims of each kind (%(default)s)"
    )
    return parser.parse_args()


def measure(one: Database, other: Database, times: int) -> dict[str, Times]:
    """Return the times of each kind of request.

    :param one: a connection to a database with hosts, ``other`` another one
    """
    without = client.in_process(one, keep_journal_days=0)
    with_it = client.in_process(other)
    claim = Claim("claim", "flat", HOSTS, "/allocations", method="PUT")
    claims = {
        "a claim with the journal": (with_it, claim.requests("journal")),
        "a claim without it": (without, claim.requests("none")),
    }
    times_by_kind: dict[str, Times] = {name: [] for name in claims}
    for number in range(times + 10):
        for name, (send, requests) in claims.items():
            path, body = next(requests)
            took = _time(send, "PUT", path, body)
            # At first, statements are compiled.
            if number >= 10:
                times_by_kind[name].append(took)
    consumer = next(claim.requests("journal"))[0].rpartition("/")[2]
    for name, path in (
        ("a page of 1000 changes", FEED),
        ("the history of a consumer", HISTORY + consumer),
    ):
        times_by_kind[name] = [_time(with_it, "GET", path) for _ in range(30)]
    return times_by_kind


def _time(
    send: Send, method: str, path: str, body: object = None
) -> tuple[float, float]:
    clocks: list[Callable[[], float]] = [time.perf_counter, time.process_time]
    before = [clock() for clock in clocks]
    status, answer = send(method, path, body)
    elapsed, processor = (
        (clock() - begun) * 1000 for clock, begun in zip(clocks, before, strict=True)
    )
    if status not in (200, 204):
        raise SystemExit(f"{method} {path}: {status} {answer.decode()}")
    return elapsed, processor


def _print(name: str, times: Times) -> None:
    elapsed, processor = zip(*times, strict=True)
    figures = [
        f"{what} {statistics.median(each):6.2f} ms, least {min(each):6.2f}"
        for what, each in (("elapsed", elapsed), ("processor", processor))
    ]
    print(f"{name:28} {'; '.join(figures)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""Measure: ``python -m benchmarks --help``."""

import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import client, cloud, fixed, load, question, writer
from benchmarks.client import Send
from benchmarks.question import Question
from placement.db import migration
from placement.objects import standard_name
from placement.objects.ledger import Ledger
from placement_foundation import option
from placement_foundation.database import storage
from placement_foundation.database.storage import Database

# The number of measured requests that do nothing.
FIXED_TIMES = 3000


@dataclasses.dataclass(frozen=True)
class Figure:
    """The times of the answers to a question, in milliseconds."""

    name: str
    way: str
    median: float
    fastest: float
    slowest: float
    size: int
    times: int


def main() -> int:
    """Measure the chosen questions, print a table, and write the figures as JSON."""
    options = _parse()
    if options.fixed:
        with _planted("flat", 1) as (_, database):
            fixed.report(fixed.measure(database, FIXED_TIMES))
        return 0
    figures: list[Figure] = []
    questions = [
        each
        for each in question.questions(options.scale)
        if not options.only or any(text in each.name for text in options.only)
    ]
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    clouds = dict.fromkeys((each.kind, each.hosts) for each in questions)
    _print_heading()
    for kind, hosts in clouds:
        about = [each for each in questions if (each.kind, each.hosts) == (kind, hosts)]
        with _planted(kind, hosts) as (url, database):
            if "process" in options.ways:
                _print_load(url, kind, hosts)
                send = client.in_process(database)
                with _changing(options, url, kind, hosts) as change:
                    measured = _Measure(send, "process", options.times, change, clock)
                    figures += measured.all(about)
            database.engine.dispose()
            if "http" in options.ways:
                with (
                    client.over_http(url) as send,
                    _changing(options, url, kind, hosts) as change,
                ):
                    measured = _Measure(
                        send, "http", options.times, change, time.perf_counter
                    )
                    figures += measured.all(about)
    if options.output:
        options.output.write_text(json.dumps(_report(figures), indent=2) + "\n")
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--scale", type=float, default=1, help="size of the clouds (%(default)s)"
    )
    parser.add_argument(
        "--times", type=int, default=20, help="requests for each figure (%(default)s)"
    )
    parser.add_argument(
        "--ways",
        nargs="+",
        choices=["process", "http"],
        default=["process", "http"],
        help="how to reach the service (both)",
    )
    parser.add_argument(
        "--only", nargs="+", metavar="TEXT", help="questions with a text in their name"
    )
    parser.add_argument(
        "--still",
        action="store_true",
        help="let no other process claim on a random host between two requests",
    )
    parser.add_argument(
        "--clock",
        choices=["wall", "cpu"],
        default="wall",
        help="what to measure in process: elapsed time, or processor time, for a "
        "machine that is busy with other work (%(default)s)",
    )
    parser.add_argument(
        "--fixed",
        action="store_true",
        help="print instead what a request that does nothing costs, by step",
    )
    parser.add_argument("--output", type=Path, help="file for the figures, as JSON")
    return parser.parse_args()


@contextlib.contextmanager
def _planted(kind: str, hosts: int) -> Iterator[tuple[str, Database]]:
    """Yield a SQLite database with a cloud in it."""
    with tempfile.TemporaryDirectory() as directory:
        url = f"sqlite:///{directory}/placement.db"
        database = storage.connect(option.DatabaseSettings(url))
        migration.SCHEMA.upgrade(database)
        standard_name.synchronise(Ledger(database))
        cloud.plant(database, cloud.KINDS[kind](hosts))
        yield url, database
        database.engine.dispose()


@contextlib.contextmanager
def _changing(
    options: argparse.Namespace, url: str, kind: str, hosts: int
) -> Iterator[Callable[[], None]]:
    """Yield a function that changes a host from another process, or does nothing."""
    if options.still:
        yield lambda: None
    else:
        with writer.writing(url, kind, hosts) as write:
            yield write


@dataclasses.dataclass(frozen=True)
class _Measure:
    """Sends each request many times, with a change between two requests."""

    send: Send
    way: str
    times: int
    change: Callable[[], None]
    clock: Callable[[], float]

    def all(self, about: list[Question]) -> list[Figure]:
        """Measure and print the figures of some questions."""
        figures = []
        for each in about:
            figures.append(self.one(each))
            _print_row(figures[-1])
        return figures

    def one(self, about: Question) -> Figure:
        """Send twice to warm up, then as many times as requested."""
        took, size = [], 0
        requests = itertools.islice(about.requests(self.way), self.times + 2)
        for number, (path, body) in enumerate(requests):
            self.change()
            before = self.clock()
            status, document = self.send(about.method, path, body)
            if number > 1:
                took.append((self.clock() - before) * 1000)
            if status not in (200, 204):
                raise SystemExit(f"{about.name}: {status} {document.decode()}")
            size = len(document)
        median = statistics.median(took)
        return Figure(
            about.name, self.way, median, min(took), max(took), size, self.times
        )


def _print_load(url: str, kind: str, hosts: int) -> None:
    figures = load.measure(url)
    print(
        f"first load, {hosts} {kind} hosts: {figures['milliseconds']:.0f} ms of "
        f"processor time, {figures['megabytes']:.0f} MB",
        flush=True,
    )


def _print_heading() -> None:
    print(f"{'':58} {'':8} {'median':>9} {'fastest':>9} {'slowest':>9} {'bytes':>9}")


def _print_row(figure: Figure) -> None:
    times = (figure.median, figure.fastest, figure.slowest)
    row = " ".join(f"{milliseconds:6.1f} ms" for milliseconds in times)
    print(f"{figure.name:58} {figure.way:8} {row} {figure.size:9}", flush=True)


def _report(figures: list[Figure]) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "machine": platform.platform(),
        "processors": os.cpu_count(),
        "load": os.getloadavg()[0],
        "figures": [dataclasses.asdict(figure) for figure in figures],
    }


if __name__ == "__main__":
    sys.exit(main())

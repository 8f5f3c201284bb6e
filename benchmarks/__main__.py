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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import client, cloud, question
from benchmarks.client import Ask
from benchmarks.question import Question
from placement.db import migration
from placement.objects import standard_name
from placement_foundation import option, storage
from placement_foundation.storage import Database


@dataclasses.dataclass(frozen=True)
class Figure:
    """How long the answers to a question took, in milliseconds."""

    name: str
    way: str
    median: float
    fastest: float
    slowest: float
    size: int
    times: int


def main() -> int:
    """Measure what is asked for, print a table, and write the figures as JSON."""
    asked = _parse()
    figures: list[Figure] = []
    wanted = [
        each
        for each in question.questions(asked.scale)
        if not asked.only or any(text in each.name for text in asked.only)
    ]
    clouds = dict.fromkeys((each.kind, each.hosts) for each in wanted)
    _print_heading()
    for kind, hosts in clouds:
        about = [each for each in wanted if (each.kind, each.hosts) == (kind, hosts)]
        with _planted(kind, hosts) as (url, database):
            if "process" in asked.ways:
                ask = client.in_process(database)
                figures += _measure_all(ask, about, "process", asked.times)
            database.engine.dispose()
            if "http" in asked.ways:
                with client.over_http(url) as ask:
                    figures += _measure_all(ask, about, "http", asked.times)
    if asked.output:
        asked.output.write_text(json.dumps(_report(figures), indent=2) + "\n")
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
        "--only", nargs="+", metavar="TEXT", help="questions whose name has a text"
    )
    parser.add_argument("--output", type=Path, help="file for the figures, as JSON")
    return parser.parse_args()


@contextlib.contextmanager
def _planted(kind: str, hosts: int) -> Iterator[tuple[str, Database]]:
    """Give a SQLite database with a cloud in it."""
    with tempfile.TemporaryDirectory() as directory:
        url = f"sqlite:///{directory}/placement.db"
        database = storage.connect(option.DatabaseSettings(url))
        migration.SCHEMA.upgrade(database)
        standard_name.synchronise(database)
        cloud.plant(database, cloud.KINDS[kind](hosts))
        yield url, database
        database.engine.dispose()


def _measure_all(ask: Ask, about: list[Question], way: str, times: int) -> list[Figure]:
    figures = []
    for each in about:
        figures.append(_measure(ask, each, way, times))
        _print_row(figures[-1])
    return figures


def _measure(ask: Ask, about: Question, way: str, times: int) -> Figure:
    """Ask twice to warm up, then as often as wanted."""
    took, size = [], 0
    for number, (path, body) in enumerate(
        itertools.islice(about.requests(way), times + 2)
    ):
        before = time.perf_counter()
        status, document = ask(about.method, path, body)
        if number > 1:
            took.append((time.perf_counter() - before) * 1000)
        if status not in (200, 204):
            raise SystemExit(f"{about.name}: {status} {document.decode()}")
        size = len(document)
    return Figure(
        about.name, way, statistics.median(took), min(took), max(took), size, times
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

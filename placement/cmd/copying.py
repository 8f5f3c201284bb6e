"""``placement-manage export`` and ``import``: a whole database as a file."""

import argparse
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from oslo_config import cfg

from placement.db import migration
from placement.objects import copying
from placement.objects.copying import Line, Unreadable
from placement_foundation.database import engine
from placement_foundation.database.storage import Database
from placement_foundation.observing import progress

PROGRAM = "placement-manage"
EXPORT, IMPORT = "export", "import"
# What the file is called until all of it is written.
UNFINISHED = ".unfinished"
# A line is a row; none is nearly as long.
LONGEST_LINE = 64 << 20


def add(categories: Any) -> None:
    """Add the commands to those of ``placement-manage``."""
    for name, run in ((EXPORT, export), (IMPORT, import_)):
        parser: argparse.ArgumentParser = categories.add_parser(
            name, help=run.__doc__, description=run.__doc__
        )
        parser.add_argument("file", type=Path, metavar="<file>", help="The copy.")
        parser.set_defaults(action="", run=run, code_of_trouble=1)


def export(database: Database, config: cfg.ConfigOpts) -> int:
    """Write everything that the database has at this moment to a new file."""
    path: Path = config.category.file
    if path.exists():
        raise ValueError(f"{path} exists already")
    engine.require_file(database.engine.url)
    with progress.shown(PROGRAM) as report, database.patient() as patient:
        rows = patient.look(
            lambda connection: save(path, copying.read(connection, report))
        )
    print(f"{rows} rows are in {path}")
    return 0


def import_(database: Database, config: cfg.ConfigOpts) -> int:
    """Fill an empty database with what such a file has, all of it or nothing."""
    path: Path = config.category.file
    with progress.shown(PROGRAM) as report:
        report.begin("checking the file")
        check(path)
        migration.SCHEMA.upgrade(database, report=report)
        with database.patient() as patient:
            copied = patient.write(
                lambda connection: copying.write(connection, load(path), report),
                attempts=1,
            )
            patient.write(copying.analyse)
    print(f"{copied.total} rows were imported")
    return 0


def save(path: Path, lines: Iterable[Line]) -> int:
    """Write lines to a file, whole or not at all, and return how many are rows."""
    unfinished = path.with_name(path.name + UNFINISHED)
    digest, rows = hashlib.sha256(), 0
    try:
        with unfinished.open("wb") as raw:
            with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0) as out:
                for line in lines:
                    rows += isinstance(line, list)
                    written = _written(line)
                    digest.update(written)
                    out.write(written)
                out.write(_written({"sha256": digest.hexdigest()}))
            raw.flush()
            os.fsync(raw.fileno())
        unfinished.rename(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return rows


def _written(line: Line) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def check(path: Path) -> None:
    """Check that a file is whole, before anything is done with it.

    :raises Unreadable: it is not, or it is something else
    """
    for _ in _lines(path):
        pass


def load(path: Path) -> Iterator[Line]:
    """Yield the lines of a file.

    :raises Unreadable: it is not whole, or something else
    """
    for number, line in enumerate(_lines(path), 1):
        try:
            document = json.loads(line)
        except ValueError as exc:
            raise Unreadable(f"line {number} of {path} is not JSON: {exc}") from exc
        if not isinstance(document, dict | list):
            raise Unreadable(f"line {number} of {path} is neither object nor list")
        yield document


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file but the last one, which has the checksum of all."""
    digest = hashlib.sha256()
    try:
        with gzip.open(path) as unpacked:
            line = b""
            for following in _each(unpacked):
                if line:
                    digest.update(line)
                    yield line
                line = following
    except (EOFError, OSError, ValueError, zlib.error) as exc:
        if isinstance(exc, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise Unreadable(f"{path} is not a whole copy: {exc}") from exc
    if line != _written({"sha256": digest.hexdigest()}):
        raise Unreadable(
            f"{path} is not a whole copy: its checksum is wrong or missing"
        )


def _each(unpacked: gzip.GzipFile) -> Iterator[bytes]:
    while line := unpacked.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise ValueError("a line is too long")
        yield line

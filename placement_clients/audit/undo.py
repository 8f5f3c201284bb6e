"""The file that says how to claim again what was released: lines of JSON.

Each line is on the disk before its claim is released, so it is complete whatever
happens. A last line without an end belongs to a claim that was not touched.
"""

import contextlib
import datetime
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from placement_clients.output import Unusable
from placement_clients.record import Json

HEADER = {"program": "placement-audit", "content": "undo", "format": 1}
MEMBERS = ("consumer", "allocations", "project_id", "user_id")


class UndoFile:
    """A new file, which must not exist yet.

    :raises Unusable: it cannot be created
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._file = os.fdopen(handle, "w", encoding="utf-8")
            self._write(HEADER)
            _sync_directory(path.parent)
        except OSError as exc:
            raise Unusable(f"{path}: {exc.strerror}") from exc

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    def add(self, consumer: str, body: Json) -> None:
        """Write down how to claim again what a consumer claims.

        :param body: what ``PUT /allocations/{consumer}`` takes, without a generation
        :raises Unusable: it cannot be written
        """
        try:
            self._write({"consumer": consumer, **body})
        except OSError as exc:
            raise Unusable(f"{self.path}: {exc.strerror}") from exc

    def _write(self, document: Json) -> None:
        self._file.write(json.dumps(document) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def default_path() -> Path:
    """Return the name of a file for what is released now."""
    now = datetime.datetime.now(datetime.UTC)
    return Path(f"placement-audit-undo-{now:%Y%m%dT%H%M%SZ}.ndjson")


def read(path: Path) -> Iterator[tuple[str, Json]]:
    """Yield each consumer of a file, and what to put to claim the same again.

    :raises Unusable: it is no such file
    """
    try:
        with path.open(encoding="utf-8") as file:
            if _parse(path, 1, file.readline()) != HEADER:
                raise Unusable(f"{path}:1: this was not written by placement-audit")
            for number, line in enumerate(file, 2):
                if not line.endswith("\n"):
                    return
                yield _read_line(path, number, line)
    except OSError as exc:
        raise Unusable(f"{path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise Unusable(f"{path}: this is not UTF-8") from exc


def _read_line(path: Path, number: int, line: str) -> tuple[str, Json]:
    document = _parse(path, number, line)
    if not (isinstance(document, dict) and document.keys() >= set(MEMBERS)):
        raise Unusable(f"{path}:{number}: {', '.join(MEMBERS)} are needed")
    return str(document.pop("consumer")), document


def _parse(path: Path, number: int, line: str) -> Json:
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(line)
    raise Unusable(f"{path}:{number}: this is not JSON")

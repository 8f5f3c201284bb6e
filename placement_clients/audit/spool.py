"""Sorts what was read, in a temporary file: memory does not grow with the cloud."""

import itertools
import json
import sqlite3
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Self

from placement_clients.record import Json

# How many rows are written at a time, and how much memory the database may use.
PORTION = 500
CACHE_KIB = 16_384

Row = tuple[str, str, Json]


class Spool:
    """Documents of some kinds about consumers, in a database that nobody else sees."""

    def __init__(self) -> None:
        # A database without a name is a temporary file.
        self._database = sqlite3.connect("")
        self._database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._database.execute(
            "CREATE TABLE notes (consumer TEXT, kind TEXT, document TEXT)"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._database.close()

    def add(self, rows: Iterable[Row]) -> None:
        """Keep rows: a consumer with a kind and a document each."""
        packed = (
            (consumer, kind, json.dumps(document)) for consumer, kind, document in rows
        )
        while portion := list(itertools.islice(packed, PORTION)):
            self._database.executemany("INSERT INTO notes VALUES (?, ?, ?)", portion)

    def by_consumer(self) -> Iterator[tuple[str, list[tuple[str, Json]]]]:
        """Yield each consumer with its kinds and documents, by consumer."""
        found = self._database.execute(
            "SELECT consumer, kind, document FROM notes ORDER BY consumer, kind, rowid"
        )
        for consumer, rows in itertools.groupby(found, itemgetter(0)):
            yield consumer, [(kind, json.loads(text)) for _, kind, text in rows]

    def of_kind(self, kind: str) -> Iterator[Json]:
        """Yield the documents of a kind, by consumer."""
        found = self._database.execute(
            "SELECT document FROM notes WHERE kind = ? ORDER BY consumer, rowid",
            [kind],
        )
        for (text,) in found:
            yield json.loads(text)

    def count(self, kind: str) -> int:
        """Return how many documents there are of a kind."""
        statement = "SELECT count(*) FROM notes WHERE kind = ?"
        return int(self._database.execute(statement, [kind]).fetchone()[0])

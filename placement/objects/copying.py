"""Copies: everything that a database has, as lines, and a database made of them.

A copy belongs to no kind of database. Rows keep their ids. What only makes sense in the
database it was recorded in, the change log and the life of the journal, begins anew.
"""

import base64
import dataclasses
import datetime
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa

from placement.db import models
from placement.db.own import content
from placement.objects import standard_name
from placement.objects.journal import recording
from placement_foundation.database import sequence, storage
from placement_foundation.observing import progress
from placement_foundation.observing.progress import Progress

Row: TypeAlias = Sequence[Any]
# A line of a copy: the head, a table with its columns, or a row of the table before.
Line: TypeAlias = dict[str, Any] | list[Any]

FORMAT = "placement-copy"
VERSION = 1
# How many rows are read or written at a time.
BATCH = 2_000
# Tables that are filled by ``Content`` in each database.
NOT_COPIED = {models.FOREST_STAMPS.name, models.JOURNAL_STATE.name}
PROVIDERS = models.Base.metadata.tables[models.ResourceProvider.__tablename__]
# The columns that refer to rows of the same table.
RELATIVES = ("root_provider_id", "parent_provider_id")
RELATED = ("id", *RELATIVES)
# Tables that have standard content before anything is stored.
STANDARD = {models.Trait.__tablename__, models.ResourceClass.__tablename__}


class Unreadable(ValueError):
    """A copy cannot be read: it is something else, damaged or of a later release."""


class NotEmpty(ValueError):
    """A copy would be mixed with what a database has already."""


@dataclasses.dataclass(frozen=True, slots=True)
class Copied:
    """How many rows were copied, by table."""

    rows: Mapping[str, int]

    @property
    def total(self) -> int:
        """How many rows there are in all."""
        return sum(self.rows.values())


def _tables() -> list[sa.Table]:
    """Return what is copied, each table after those that it refers to."""
    own = [each for each in models.OWN.sorted_tables if each.name not in NOT_COPIED]
    return [*models.Base.metadata.sorted_tables, *own]


def read(
    connection: sa.Connection, report: Progress = progress.SILENT
) -> Iterator[Line]:
    """Yield the lines of a copy, as the transaction sees the database.

    Few of them are in memory at a time.
    """
    present = set(sa.inspect(connection).get_table_names())
    tables = [table for table in _tables() if table.name in present]
    counts = {
        table.name: connection.scalar(sa.select(sa.func.count()).select_from(table))
        for table in tables
    }
    report.begin("reading", sum(filter(None, counts.values())))
    yield {"format": FORMAT, "version": VERSION, "rows": counts}
    for table in tables:
        yield {"table": table.name, "columns": [column.name for column in table.c]}
        writers = [_writer(column) for column in table.c]
        query = sa.select(table).order_by(*table.primary_key)
        streaming = connection.execution_options(yield_per=BATCH)
        for rows in streaming.execute(query).partitions():
            report.advance(len(rows))
            for row in rows:
                yield [write(value) for write, value in zip(writers, row, strict=True)]


def _as_it_is(value: Any) -> Any:
    return value


def _unless_null(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


def _writer(column: sa.Column[Any]) -> Callable[[Any], Any]:
    """Return what turns the values of a column into JSON."""
    if isinstance(column.type, sa.DateTime):
        return _unless_null(lambda value: value.isoformat())
    if isinstance(column.type, sa.LargeBinary):
        return _unless_null(lambda value: base64.b64encode(value).decode("ascii"))
    return _as_it_is


def _reader(column: sa.Column[Any]) -> Callable[[Any], Any]:
    """Return what turns JSON into the values of a column."""
    if isinstance(column.type, sa.DateTime):
        return _unless_null(datetime.datetime.fromisoformat)
    if isinstance(column.type, sa.LargeBinary):
        return _unless_null(lambda value: base64.b64decode(value, validate=True))
    return _as_it_is


def check_is_empty(connection: sa.Connection) -> None:
    """Check that a database has nothing but what each new one has.

    :raises NotEmpty: it has more
    """
    for table in _tables():
        query = sa.select(sa.func.count()).select_from(table)
        if table.name == models.Trait.__tablename__:
            query = query.where(models.Trait.name.startswith("CUSTOM", autoescape=True))
        elif table.name == models.ResourceClass.__tablename__:
            query = query.where(models.ResourceClass.name.startswith("CUSTOM"))
        if connection.scalar(query):
            raise NotEmpty(
                f"The database is not empty: there are rows in {table.name}. A copy is "
                "imported into an empty database only."
            )


def write(
    connection: sa.Connection,
    lines: Iterable[Line],
    report: Progress = progress.SILENT,
) -> Copied:
    """Fill an empty database with a copy.

    :raises NotEmpty: the database is not empty
    :raises Unreadable: the lines are not a copy that this release knows
    """
    check_is_empty(connection)
    for name in STANDARD:
        connection.execute(sa.delete(models.Base.metadata.tables[name]))
    lines = iter(lines)
    report.begin("writing", _total(next(lines, None)))
    known = {table.name: table for table in _tables()}
    with standard_name.zero_as_an_id(connection):
        copied = _fill(connection, lines, known, report)
    sequence.count_on(connection, [known[name] for name in copied])
    _begin_anew(connection)
    return Copied(copied)


def analyse(connection: sa.Connection) -> None:
    """Let the database count what was imported. This may commit."""
    storage.analyse(connection, _tables())


def _fill(
    connection: sa.Connection,
    lines: Iterator[Line],
    known: Mapping[str, sa.Table],
    report: Progress,
) -> dict[str, int]:
    """Insert the rows of each table, and return how many they were, by table."""
    copied: dict[str, int] = {}
    into: _Into | None = None
    for is_heading, group in itertools.groupby(lines, lambda line: type(line) is dict):
        if is_heading:
            for heading in group:
                into = _into(heading, known)
                copied[into.table.name] = 0
        elif into is None:
            raise Unreadable("A row comes before the name of its table.")
        else:
            copied[into.table.name] += into.insert(connection, group, report)
    return copied


def _begin_anew(connection: sa.Connection) -> None:
    """Let processes that keep the cloud and readers of the journal notice it."""
    recording.note_everything(connection)
    connection.execute(sa.delete(models.JOURNAL_STATE))
    content.CONTENT.complete(connection)


def _total(head: Line | None) -> int:
    """Return how many rows a copy has, as its first line says."""
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise Unreadable("It is not a copy made by placement-manage export.")
    if head.get("version") != VERSION:
        raise Unreadable(
            f"It is a copy of version {head.get('version')}; this release reads "
            f"version {VERSION}."
        )
    return sum(head["rows"].values())


def _into(heading: Any, known: Mapping[str, sa.Table]) -> "_Into":
    """Return where the rows after a heading belong."""
    table = known.get(heading.get("table"))
    if table is None:
        raise Unreadable(
            f"It has a table that this release does not know: {heading.get('table')}."
        )
    unknown = [name for name in heading["columns"] if name not in table.c]
    if unknown:
        raise Unreadable(
            f"It has columns of {table.name} that this release does not know: "
            f"{', '.join(unknown)}."
        )
    kind = _IntoProviders if table is PROVIDERS else _Into
    return kind(table, heading["columns"])


class _Into:
    """A table that is filled with rows.

    :param columns: the names of the values in each row
    """

    def __init__(self, table: sa.Table, columns: Sequence[str]) -> None:
        self.table = table
        self._columns = columns
        self._readers = [_reader(table.c[name]) for name in columns]

    def insert(
        self, connection: sa.Connection, rows: Iterable[Any], report: Progress
    ) -> int:
        """Insert rows, and return how many they were."""
        count = 0
        for chunk in _batches(rows):
            connection.execute(
                sa.insert(self.table), [self._read(row) for row in chunk]
            )
            count += len(chunk)
            report.advance(len(chunk))
        return count

    def _read(self, row: Row) -> dict[str, Any]:
        try:
            return {
                name: read(value)
                for name, read, value in zip(
                    self._columns, self._readers, row, strict=True
                )
            }
        except (ValueError, TypeError) as exc:
            raise Unreadable(f"A row of {self.table.name} is damaged: {exc}.") from exc


class _IntoProviders(_Into):
    """Providers: they refer to others, which may come later."""

    def insert(
        self, connection: sa.Connection, rows: Iterable[Any], report: Progress
    ) -> int:
        """Insert rows, first without their relatives that are not there yet."""
        there: set[int] = set()
        early: list[dict[str, Any]] = []
        count = 0
        for chunk in _batches(rows):
            values = [self._read(row) for row in chunk]
            for value in values:
                there.add(value["id"])
                if not all(value[name] in there for name in RELATIVES if value[name]):
                    early.append({f"of_{name}": value[name] for name in RELATED})
                    value.update(dict.fromkeys(RELATIVES))
            connection.execute(sa.insert(self.table), values)
            count += len(values)
            report.advance(len(values))
        for some in storage.chunks(early, BATCH):
            connection.execute(_RELATE, some)
        return count


_RELATE = (
    sa.update(PROVIDERS)
    .where(PROVIDERS.c.id == sa.bindparam("of_id"))
    .values({name: sa.bindparam(f"of_{name}") for name in RELATIVES})
)


def _batches(rows: Iterable[Any]) -> Iterator[list[Any]]:
    rows = iter(rows)
    while batch := list(itertools.islice(rows, BATCH)):
        yield batch

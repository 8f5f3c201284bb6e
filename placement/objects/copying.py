"""Copies of a whole database into another one, of any kind.

Rows keep their ids. The change log and the life of the journal, which make sense in one
database only, begin anew.
"""

import contextlib
import hashlib
from collections.abc import Generator, Mapping
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exc

from placement.db import models
from placement.objects import standard_name
from placement.objects.transaction import Transaction
from placement_foundation.database import sequence, storage, trouble
from placement_foundation.observing import progress
from placement_foundation.observing.progress import Progress

# How many rows are read or written at a time.
BATCH = 2_000
# Tables whose rows make sense in one database only.
NOT_COPIED = {models.FOREST_STAMPS.name, models.JOURNAL_STATE.name}
PROVIDERS = models.Base.metadata.tables[models.ResourceProvider.__tablename__]
# The columns that refer to rows of the same table.
RELATIVES = ("root_provider_id", "parent_provider_id")
# The columns that are set once all providers are there; times of changes stay.
LATER = (*RELATIVES, "updated_at")
# Tables that have standard content before anything is stored.
STANDARD = (models.Trait, models.ResourceClass)

_RELATE = (
    sa.update(PROVIDERS)
    .where(PROVIDERS.c.id == sa.bindparam("of_id"))
    .values({name: sa.bindparam(f"of_{name}") for name in LATER})
)


class NotEmpty(ValueError):
    """The target of a copy has rows already."""


class NotCopied(ValueError):
    """A row cannot be stored in the other database, or differs there."""


def _tables() -> list[sa.Table]:
    """Return the tables to copy, each after those that it refers to."""
    own = [each for each in models.OWN.sorted_tables if each.name not in NOT_COPIED]
    return [*models.Base.metadata.sorted_tables, *own]


def copy(
    source: sa.Connection, tx: Transaction, report: Progress = progress.SILENT
) -> int:
    """Copy the rows of a database into an empty one; return how many.

    :raises NotEmpty: the target has rows already
    :raises NotCopied: a row cannot be stored, or differs there
    """
    target = tx.connection
    check_is_empty(target)
    for model in STANDARD:
        target.execute(sa.delete(model))
    present = set(sa.inspect(source).get_table_names())
    tables = [table for table in _tables() if table.name in present]
    counts = {table.name: _count(source, table) for table in tables}
    report.begin("copying", sum(counts.values()))
    with standard_name.zero_as_an_id(target):
        for table in tables:
            with contextlib.closing(_read(source, table)) as reading:
                for rows in reading:
                    _insert(target, table, rows)
                    report.advance(len(rows))
    for rows in _read(source, PROVIDERS):
        target.execute(_RELATE, [_relatives(row) for row in rows])
    sequence.count_on(target, tables)
    report.begin("comparing", sum(counts.values()))
    for table in tables:
        if _digest(source, table, report) != _digest(target, table):
            raise NotCopied(f"The rows of {table.name} are not what they were.")
    # Kept forests, and cursors of the journal, are void.
    tx.record_all()
    target.execute(sa.delete(models.JOURNAL_STATE))
    return sum(counts.values())


def check_is_empty(connection: sa.Connection) -> None:
    """Check that a database has no rows but those that each new one has.

    :raises NotEmpty: it has other rows
    """
    for table in _tables():
        query = sa.select(sa.func.count()).select_from(table)
        if table.name in {model.__tablename__ for model in STANDARD}:
            query = query.where(table.c.name.startswith("CUSTOM_", autoescape=True))
        if connection.scalar(query):
            raise NotEmpty(
                f"The database is not empty: there are rows in {table.name}. A copy "
                "goes to an empty database only."
            )


def analyse(connection: sa.Connection) -> None:
    """Let the database count the copied rows. This may commit."""
    storage.analyse(connection, _tables())


def _count(connection: sa.Connection, table: sa.Table) -> int:
    return connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0


def _read(
    connection: sa.Connection, table: sa.Table
) -> Generator[list[dict[str, Any]], None, None]:
    """Yield the rows of a table, few of them at a time."""
    query = sa.select(table).order_by(*table.primary_key)
    options = {"yield_per": BATCH}
    # No connection of a server does anything else before the result is closed.
    with connection.execute(query, execution_options=options) as streaming:
        for rows in streaming.mappings().partitions():
            yield [dict(row) for row in rows]


def _insert(
    connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]
) -> None:
    """Insert rows; those of providers without their relatives, which may come later.

    :raises NotCopied: a row cannot be stored
    """
    if table is PROVIDERS:
        rows = [{**row, **dict.fromkeys(RELATIVES)} for row in rows]
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(table), rows)
    except (db_exc.DBError, sa.exc.DBAPIError) as exc:
        if len(rows) > 1:
            half = len(rows) // 2
            _insert(connection, table, rows[:half])
            _insert(connection, table, rows[half:])
            return
        key = ", ".join(
            f"{each.name} {rows[0][each.name]}" for each in table.primary_key
        )
        raise NotCopied(
            f"The row of {table.name} with {key} cannot be stored: "
            f"{trouble.describe(exc)}"
        ) from exc


def _relatives(row: Mapping[str, Any]) -> dict[str, Any]:
    return {f"of_{name}": row[name] for name in ("id", *LATER)}


def _digest(
    connection: sa.Connection, table: sa.Table, report: Progress = progress.SILENT
) -> int:
    """Return a number that stands for the rows of a table, in whatever order."""
    # MariaDB keeps most times to the second.
    names = [each.name for each in table.c if not isinstance(each.type, sa.DateTime)]
    total = 0
    for rows in _read(connection, table):
        for row in rows:
            text = repr([_plain(row[name]) for name in names]).encode()
            total += int.from_bytes(hashlib.blake2b(text, digest_size=16).digest())
        report.advance(len(rows))
    return total


def _plain(value: Any) -> Any:
    """Return a value as every database has it: MariaDB's floats are short."""
    return f"{value:.5g}" if isinstance(value, float) else value

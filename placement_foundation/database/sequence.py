"""Sequences of PostgreSQL, which draw the ids of rows.

A sequence does not notice rows that are written with their ids, as a copy does: its
next id may be taken. Other databases count on from the largest id.
"""

from collections.abc import Iterable

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_log import log

from placement_foundation.database import trouble

LOG = log.getLogger(__name__)

# The end of the name of a primary key's constraint.
KEY = "_pkey"


def count_on(connection: sa.Connection, tables: Iterable[sa.Table]) -> None:
    """Let PostgreSQL draw ids that are not taken; other databases do so anyway."""
    for table, key in _counted(connection, tables):
        largest = sa.func.max(key)
        sequence = sa.func.pg_get_serial_sequence(table.name, key.name)
        counted = sa.func.setval(
            sequence, sa.func.coalesce(largest, 1), largest.is_not(None)
        )
        connection.execute(sa.select(counted))


_LAST = sa.text(
    "SELECT last_value FROM pg_sequences WHERE format('%I.%I', schemaname, "
    "sequencename) = pg_get_serial_sequence(:table, :key)"
)


def list_behind(
    connection: sa.Connection, tables: Iterable[sa.Table]
) -> list[sa.Table]:
    """Return the tables whose sequences would draw ids that are taken."""
    behind = []
    for table, key in _counted(connection, tables):
        largest = connection.scalar(sa.select(sa.func.max(key)))
        last = connection.execute(_LAST, {"table": table.name, "key": key.name})
        for row in last:
            # A sequence without a last value has drawn none yet.
            if largest is not None and (row.last_value or 0) < largest:
                behind.append(table)
    return behind


def _counted(
    connection: sa.Connection, tables: Iterable[sa.Table]
) -> Iterable[tuple[sa.Table, sa.Column[int]]]:
    """Yield tables with a sequence, each with the column that it fills."""
    if connection.dialect.name == "postgresql":
        for table in tables:
            [key, *others] = table.primary_key
            if not others and key is table.autoincrement_column:
                yield table, key


def table_behind(exc: Exception) -> str | None:
    """Return the table whose sequence drew an id that is taken, by the error."""
    if not isinstance(exc, db_exc.DBDuplicateEntry):
        return None
    diagnosis = getattr(trouble.driver_error(exc), "diag", None)
    table: str | None = getattr(diagnosis, "table_name", None)
    constraint = getattr(diagnosis, "constraint_name", None)
    return table if table and constraint == f"{table}{KEY}" else None


def catch_up(engine: sa.Engine, name: str) -> None:
    """Let a sequence that is behind count on from the largest id, if the user may."""
    table = sa.table(name, sa.column("id"))
    sequence = sa.func.pg_get_serial_sequence(name, "id")
    largest = sa.select(sa.func.max(table.c.id)).scalar_subquery()
    # Other transactions may have drawn larger ones, and not committed yet.
    taken = sa.func.greatest(largest, sa.func.nextval(sequence))
    try:
        with engine.begin() as connection:
            has_one = connection.scalar(sa.select(sa.func.setval(sequence, taken)))
        if has_one:
            LOG.warning("ids of the table %s were taken: its sequence was behind", name)
    except (sa.exc.DBAPIError, db_exc.DBError) as exc:
        LOG.warning(
            "the sequence of the table %s is behind, and cannot be set: %s",
            name,
            trouble.describe(exc),
        )

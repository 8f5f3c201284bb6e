"""Steps of migrations that can be repeated: MySQL and MariaDB commit each statement."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op


def create_index(name: str, table: str, columns: Sequence[Any]) -> None:
    """Create an index, unless an earlier attempt has."""
    # Only some of the databases have CREATE INDEX IF NOT EXISTS.
    there = sa.inspect(op.get_bind()).get_indexes(table)
    if name not in {each["name"] for each in there}:
        op.create_index(name, table, columns)


def add_column(table: str, name: str, kind: sa.types.TypeEngine[Any]) -> None:
    """Add a column that may be null, unless an earlier attempt has."""
    if not has_column(table, name):
        op.add_column(table, sa.Column(name, kind, nullable=True))


def has_column(table: str, name: str) -> bool:
    """Return whether a table has a column."""
    columns = sa.inspect(op.get_bind()).get_columns(table)
    return name in {each["name"] for each in columns}


def create_table(connection: sa.Connection, table: sa.Table) -> None:
    """Create a table and its indexes, as far as earlier attempts have not."""
    table.create(connection, checkfirst=True)
    for index in table.indexes:
        index.create(connection, checkfirst=True)

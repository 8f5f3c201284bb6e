"""The parts of the shared schema that this release needs and a database lacks."""

import sqlalchemy as sa

from placement.db import models
from placement_foundation.database.migration import MigrationError


def list_missing(connection: sa.Connection) -> list[str]:
    """Return the tables, columns and UNIQUE constraints that are missing, in words.

    :raises MigrationError: there is no table at all
    """
    inspector = sa.inspect(connection)
    present = set(inspector.get_table_names())
    if present.isdisjoint(models.Base.metadata.tables):
        raise MigrationError(
            "the database has no tables of Placement: run placement-manage db sync"
        )
    missing = []
    for table in models.Base.metadata.sorted_tables:
        if table.name not in present:
            missing.append(f"the table {table.name}")
            continue
        columns = {column["name"] for column in inspector.get_columns(table.name)}
        missing += [
            f"the column {column}" for column in table.c if column.name not in columns
        ]
        unique = _list_unique(inspector, table.name)
        missing += [
            f"the UNIQUE constraint {constraint.name} of {table.name}"
            for constraint in table.constraints
            if isinstance(constraint, sa.UniqueConstraint)
            and set(constraint.columns.keys()) not in unique
        ]
    return missing


def _list_unique(inspector: sa.Inspector, table: str) -> list[set[str | None]]:
    """Return the columns of each constraint and index that is unique."""
    constraints = inspector.get_unique_constraints(table)
    indexes = [each for each in inspector.get_indexes(table) if each["unique"]]
    return [
        *(set[str | None](each["column_names"]) for each in constraints),
        *(set(each["column_names"]) for each in indexes),
    ]

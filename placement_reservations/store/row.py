"""Rows and values: a field is stored in the column with its name."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

import sqlalchemy as sa

from placement_reservations.db import models

T = TypeVar("T")
Row: TypeAlias = sa.RowMapping | Mapping[str, Any]


def load(kind: type[T], row: Row, **others: object) -> T:
    """Return the value that a row stores.

    :param others: fields that have no column of their name
    """
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: row[name] for name in names if name not in others}, **others)


def columns(model: type[models.Base], *values: Any, **others: object) -> dict[str, Any]:
    """Return the content of a row that stores values, by column.

    :param others: columns that are not a field of any of the values
    """
    fields = {
        field.name: getattr(value, field.name)
        for value in values
        for field in dataclasses.fields(value)
    }
    kept = fields.keys() & model.__table__.c.keys()
    return {**{name: fields[name] for name in kept}, **others}


def insert(
    connection: sa.Connection, model: type[models.Base], *values: Any, **others: object
) -> None:
    """Store values in a new row; an unknown time is now."""
    row = columns(model, *values, **others)
    values_by_column = {name: value for name, value in row.items() if value is not None}
    connection.execute(sa.insert(model).values(values_by_column))


def put(
    connection: sa.Connection,
    model: type[models.Base],
    key: Mapping[str, object],
    **values: object,
) -> None:
    """Store other values in the row with a key, which is created if need be."""
    table = model.__table__
    changed = sa.update(model).where(*(table.c[name] == key[name] for name in key))
    if not connection.execute(changed.values(values)).rowcount:
        connection.execute(sa.insert(model).values({**key, **values}))

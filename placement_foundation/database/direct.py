"""Queries that the driver itself executes, without SQLAlchemy's way around them.

For a query of a few rows SQLAlchemy takes several times as long as the database.
"""

import collections
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa

_Query: TypeAlias = sa.Select[*tuple[Any, ...]] | sa.CompoundSelect[*tuple[Any, ...]]

# A query with a longer list takes its time anyway; for each length there is a text.
LONGEST_LIST = 4


def fetch_all(
    connection: sa.Connection, query: _Query, parameters: Mapping[str, Any]
) -> Sequence[Any]:
    """Return the rows of a query, as named tuples.

    No event of SQLAlchemy tells of it. If anybody listens to what comes before
    statements, or logs them, SQLAlchemy executes it.

    :param query: a constant, since what is made of it is remembered
    :param parameters: values that any driver takes as they are, and lists of them
    :raises sqlalchemy.exc.DBAPIError: the database failed
    :raises oslo_db.exception.DBError: the same
    """
    lengths = tuple(
        [(name, len(each)) for name, each in parameters.items() if type(each) is list]
    )
    if is_watched(connection) or not all(
        0 < length <= LONGEST_LIST for _, length in lengths
    ):
        return connection.execute(query, parameters).all()
    if not connection.in_transaction():
        connection.begin()
    text, arrange, make = _prepare(query, connection.dialect, lengths)
    return list(map(make, _run(connection, text, arrange(parameters))))


def begin(connection: sa.Connection, statement: str) -> None:
    """Execute the statement that begins a transaction."""
    if is_watched(connection):
        connection.exec_driver_sql(statement)
    else:
        _run(connection, statement, ())


def is_watched(connection: sa.Connection) -> bool:
    """Return whether anybody is told of statements before them, or logs them."""
    return bool(
        connection.dispatch.before_cursor_execute
        or connection.engine.logger.isEnabledFor(logging.INFO)
    )


def _run(connection: sa.Connection, text: str, values: Any) -> Sequence[Any]:
    cursor = None
    try:
        cursor = connection.connection.cursor()
        cursor.execute(text, values)
        rows: Sequence[Any] = cursor.fetchall() if cursor.description else ()
        cursor.close()
    except BaseException as exc:
        # Whoever handles the error shall not find another one than of other statements.
        connection._handle_dbapi_exception(exc, text, values, cursor, None)
    return rows


@functools.lru_cache(maxsize=256)
def _prepare(
    query: _Query, dialect: sa.Dialect, lengths: tuple[tuple[str, int], ...]
) -> tuple[
    str, Callable[[Mapping[str, Any]], Any], Callable[[Sequence[Any]], Sequence[Any]]
]:
    """Return a query's text, what arranges parameters for it, and what makes rows.

    :param lengths: how long those parameters are that are lists
    """
    filled = query.params({name: [None] * length for name, length in lengths})
    compiled: Any = filled.compile(
        dialect=dialect, compile_kwargs={"render_postcompile": True}
    )
    constants = query.compile(dialect=dialect).params
    order: Sequence[str] | None = compiled.positiontup

    def arrange(parameters: Mapping[str, Any]) -> Any:
        values = {**constants, **parameters}
        for name, _ in lengths:
            for place, each in enumerate(values.pop(name), 1):
                values[f"{name}_{place}"] = each
        return values if order is None else [values[name] for name in order]

    return str(compiled), arrange, _maker(query, dialect)


def _maker(
    query: _Query, dialect: sa.Dialect
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return what makes a row of the values that a driver gives."""
    columns = query.selected_columns
    named: Any = collections.namedtuple
    row = named("Row", columns.keys(), rename=True)
    types = [each.type.dialect_impl(dialect) for each in columns]
    found = [each.result_processor(dialect, None) for each in types]
    converters = [(place, each) for place, each in enumerate(found) if each]
    make: Callable[[Sequence[Any]], Sequence[Any]] = row._make

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        converted = list(values)
        for place, convert_value in converters:
            converted[place] = convert_value(converted[place])
        return make(converted)

    return convert if converters else make

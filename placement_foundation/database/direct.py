"""Statements that the driver itself executes, without SQLAlchemy's way around them.

For a few rows SQLAlchemy takes several times as long as the database.
"""

import collections
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import sqlalchemy as sa

from placement_foundation.database.connection import is_for_one_query

_Write: TypeAlias = sa.Insert | sa.Update | sa.Delete
_Query: TypeAlias = sa.Select[*tuple[Any, ...]] | sa.CompoundSelect[*tuple[Any, ...]]
# A name, and the length of the list if the value is one.
_Parameter: TypeAlias = tuple[str, int | None]

T = TypeVar("T")

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
    :raises AnotherQuery: the work has to be done again in a transaction
    """
    shape = tuple(
        [
            (name, len(each) if type(each) is list else None)
            for name, each in parameters.items()
        ]
    )
    if is_watched(connection) or not all(
        length is None or 0 < length <= LONGEST_LIST for _, length in shape
    ):
        return connection.execute(query, parameters).all()
    if not (is_for_one_query(connection) or connection.in_transaction()):
        connection.begin()
    prepared = _prepare(query, connection.dialect, shape)
    values = prepared.arrange(parameters)
    rows: Sequence[Any] = _run(connection, prepared.text, values, prepared.read)
    return rows


def execute(
    connection: sa.Connection, statement: _Write, rows: Sequence[Mapping[str, Any]]
) -> int:
    """Execute a statement once for each of some parameters.

    As in ``fetch_all``, only who listens to what comes before statements is told.

    :param statement: a constant, since what is made of it is remembered; it returns
        nothing
    :param rows: at least one; the parameters of each, which have the same names;
        columns without one get their defaults
    :return: how many rows it has matched, or inserted if it has the option
        ``preserve_rowcount`` of SQLAlchemy and there is one row of parameters
    :raises sqlalchemy.exc.DBAPIError: the database failed
    :raises oslo_db.exception.DBError: the same
    """
    has_several = len(rows) > 1
    # This driver has no way of its own for several rows at once.
    if is_watched(connection) or (
        has_several and connection.dialect.driver == "psycopg2"
    ):
        return connection.execute(statement, rows).rowcount
    if not connection.in_transaction():
        connection.begin()
    written = _prepare_write(statement, connection.dialect, tuple(rows[0]))
    values: Any = [written.arrange(row) for row in rows]
    if not has_several:
        [values] = values
    return _run(connection, written.text, values, _count_matched, has_several)


def begin(connection: sa.Connection, statement: str) -> None:
    """Execute the statement that begins a transaction."""
    if is_watched(connection):
        connection.exec_driver_sql(statement)
    else:
        _run(connection, statement, (), _read_nothing)


def is_watched(connection: sa.Connection) -> bool:
    """Return whether anybody is told of statements before them, or logs them."""
    return bool(
        connection.dispatch.before_cursor_execute
        or connection.engine.logger.isEnabledFor(logging.INFO)
    )


def _run(
    connection: sa.Connection,
    text: str,
    values: Any,
    read: Callable[[Any], T],
    has_several: bool = False,
) -> T:
    """Execute a statement, and return what is read from the cursor.

    :param has_several: whether there are values for several executions
    """
    proxied, cursor = connection.connection, None
    try:
        cursor = proxied.cursor()
        if has_several:
            cursor.executemany(text, values)
        else:
            cursor.execute(text, values)
        found = read(cursor)
        cursor.close()
    except BaseException as exc:
        # Whoever handles the error shall not find another one than of other statements.
        # An error that is not the driver's would be wrapped together with its text.
        of_driver = isinstance(exc, connection.dialect.loaded_dbapi.Error)
        connection._handle_dbapi_exception(
            exc, text if of_driver else None, values, cursor, None
        )
    return found


def _read_nothing(cursor: Any) -> None:
    pass


def _count_matched(cursor: Any) -> int:
    count: int = cursor.rowcount
    return count


class _Prepared:
    """A query as a driver takes it: its ``text``, and what it means."""

    def __init__(
        self, query: _Query, dialect: sa.Dialect, shape: tuple[_Parameter, ...]
    ) -> None:
        compiled = _compile(query, dialect)
        expanded = compiled.construct_expanded_state(
            {name: length and [None] * length for name, length in shape}
        )
        self.text: str = expanded.statement
        self._query = query
        self._dialect = dialect
        # The names of what stands for the members of each list.
        self._members = [
            (name, expanded.parameter_expansion[name])
            for name, length in shape
            if length
        ]
        self._constants = expanded.parameters
        # Empty if the driver takes parameters by their names.
        self._order: Sequence[str] | None = expanded.positiontup
        self._make: Callable[[Sequence[Any]], Sequence[Any]] | None = None

    def arrange(self, parameters: Mapping[str, Any]) -> Any:
        """Return the values of parameters as the driver takes them."""
        values = {**self._constants, **parameters}
        for name, members in self._members:
            values.update(zip(members, values.pop(name), strict=True))
        if not self._order:
            return values
        return [values[name] for name in self._order]

    def read(self, cursor: Any) -> Sequence[Any]:
        """Return the rows that a cursor gives, as named tuples."""
        if self._make is None:
            # The driver says of which types they are, the same ones each time.
            codes = [each[1] for each in cursor.description]
            self._make = _maker(self._query, self._dialect, codes)
        return list(map(self._make, cursor.fetchall()))


class _Written:
    """A statement that writes, as a driver takes it: its ``text``, and its values."""

    def __init__(
        self, statement: _Write, dialect: sa.Dialect, names: Sequence[str]
    ) -> None:
        compiled: Any = statement.compile(dialect=dialect, column_keys=list(names))
        expanded = compiled.construct_expanded_state(dict.fromkeys(names))
        self.text: str = expanded.statement
        self._order: Sequence[str] | None = expanded.positiontup
        self._defaults = [
            *((each.key, each.default.arg) for each in compiled.insert_prefetch),
            *((each.key, each.onupdate.arg) for each in compiled.update_prefetch),
        ]
        types = {name: each.type for name, each in compiled.binds.items()}
        self._converters = [
            (name, convert)
            for name, each in types.items()
            if (convert := each.dialect_impl(dialect).bind_processor(dialect))
        ]
        given = {*names, *(name for name, _ in self._defaults)}
        self._constants = {
            name: value
            for name, value in expanded.parameters.items()
            if name not in given
        }

    def arrange(self, row: Mapping[str, Any]) -> Any:
        """Return the values of a row as the driver takes them."""
        values = {**self._constants, **row}
        for name, make_default in self._defaults:
            # It wants to know about a statement, which is not SQLAlchemy's.
            values[name] = make_default(None)
        for name, convert in self._converters:
            values[name] = convert(values[name])
        return [values[name] for name in self._order] if self._order else values


_prepare_write = functools.lru_cache(maxsize=256)(_Written)


@functools.lru_cache(maxsize=256)
def _compile(query: _Query, dialect: sa.Dialect) -> Any:
    return query.compile(dialect=dialect)


# Queries with several lists have many shapes.
_prepare = functools.lru_cache(maxsize=1024)(_Prepared)


def _maker(
    query: _Query, dialect: sa.Dialect, codes: Sequence[Any]
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return what makes a row of the values that a driver gives.

    :param codes: what the driver calls their types
    """
    columns = query.selected_columns
    named: Any = collections.namedtuple
    row = named("Row", columns.keys(), rename=True)
    types = [each.type.dialect_impl(dialect) for each in columns]
    found = [
        each.result_processor(dialect, code)
        for each, code in zip(types, codes, strict=True)
    ]
    converters = [(place, each) for place, each in enumerate(found) if each]
    make: Callable[[Sequence[Any]], Sequence[Any]] = row._make
    if not converters:
        return make

    def convert(values: Sequence[Any]) -> Sequence[Any]:
        converted = list(values)
        for place, convert_value in converters:
            converted[place] = convert_value(converted[place])
        return make(converted)

    return convert

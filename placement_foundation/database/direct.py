"""Statements that the driver itself executes, without SQLAlchemy's way around them.

For a few rows SQLAlchemy takes several times as long as the database.
"""

import collections
import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import sqlalchemy as sa

from placement_foundation.database.connection import take

_Change: TypeAlias = sa.Insert | sa.Update | sa.Delete
_Select: TypeAlias = sa.Select[*tuple[Any, ...]] | sa.CompoundSelect[*tuple[Any, ...]]
# A name, and the length of the list if the value is one.
_Parameter: TypeAlias = tuple[str, int | None]

T = TypeVar("T")

# A query with a longer list takes its time anyway; for each length there is a text.
LONGEST_LIST = 4
# Of how many rows an error shows the values.
MOST_SHOWN = 10


def fetch_all(
    connection: sa.Connection, query: _Select, parameters: Mapping[str, Any]
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
    # The dialect knows its server from the first connection on.
    proxied = take(connection)
    prepared = _prepare(query, connection.dialect, shape)
    values = prepared.arrange(parameters)
    return _run(connection, proxied, prepared.text, values, prepared.read)


def execute(
    connection: sa.Connection, statement: _Change, rows: Sequence[Mapping[str, Any]]
) -> int:
    """Execute a statement once for each of some rows of parameters.

    As with ``fetch_all``, only listeners to what comes before statements are told.

    :param statement: a constant, since what is made of it is remembered; it returns
        nothing, and has no lists as parameters
    :param rows: at least one; each has values with the same names, and columns without
        a value get their defaults
    :return: how many rows it has matched; after an insertion of one row of parameters,
        how many are new, if the statement has the option ``preserve_rowcount``
    :raises sqlalchemy.exc.DBAPIError: the database failed
    :raises oslo_db.exception.DBError: the same
    :raises ValueError: the statement has a list as a parameter
    """
    has_several = len(rows) > 1
    # This driver would send each row that is inserted by itself; SQLAlchemy joins them.
    if is_watched(connection) or (
        has_several and connection.dialect.driver == "psycopg2"
    ):
        return connection.execute(statement, rows).rowcount
    if not connection.in_transaction():
        connection.begin()
    proxied = connection.connection
    prepared = _prepare_write(statement, connection.dialect, tuple(rows[0]))
    values: Any = [prepared.arrange(row) for row in rows]
    if not has_several:
        [values] = values
    return _run(connection, proxied, prepared.text, values, _count_matched, has_several)


def begin(connection: sa.Connection, statement: str) -> None:
    """Execute the statement that begins a transaction."""
    if is_watched(connection):
        connection.exec_driver_sql(statement)
    else:
        _run(connection, connection.connection, statement, (), _read_nothing)


def is_watched(connection: sa.Connection) -> bool:
    """Return whether anybody is told of statements before them, or logs them."""
    return bool(
        connection.dispatch.before_cursor_execute
        or connection.engine.logger.isEnabledFor(logging.INFO)
    )


def _run(
    connection: sa.Connection,
    proxied: sa.PoolProxiedConnection,
    text: str,
    values: Any,
    read: Callable[[Any], T],
    has_several: bool = False,
) -> T:
    """Execute a statement, and return what is read from the cursor.

    :param has_several: whether there are values for several executions
    """
    cursor = None
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
        shown = values[:MOST_SHOWN] if has_several else values
        connection._handle_dbapi_exception(
            exc, text if of_driver else None, shown, cursor, None
        )
    return found


def _read_nothing(cursor: Any) -> None:
    pass


def _count_matched(cursor: Any) -> int:
    count: int = cursor.rowcount
    return count


class _Prepared:
    """A statement as a driver takes it: its ``text``, and the order of its values.

    :param parameters: anything for each parameter; of a list, only the length matters
    :param made: the names of other values that each execution has for itself
    """

    def __init__(
        self,
        compiled: Any,
        dialect: sa.Dialect,
        parameters: Mapping[str, Any],
        made: Iterable[str] = (),
    ) -> None:
        expanded = compiled.construct_expanded_state(parameters)
        self.text: str = expanded.statement
        # The names of what stands for the members of each list.
        self._members = [
            (name, expanded.parameter_expansion[name])
            for name, value in parameters.items()
            if value
        ]
        # Empty if the driver takes values by their names.
        self._order: Sequence[str] | None = expanded.positiontup
        # What makes of a value what the driver stores as its type.
        self._converters: dict[str, Callable[[Any], Any]] = {
            name: convert
            for parameter, name in compiled.bind_names.items()
            if (convert := _converter(parameter.type, dialect))
        }
        converters = {**self._converters, **expanded.processors}
        given = {
            *parameters,
            *made,
            *(one for _, each in self._members for one in each),
        }
        self._constants = {
            name: converters.get(name, _as_it_is)(value)
            for name, value in expanded.parameters.items()
            if name not in given
        }

    def _in_order(self, values: Mapping[str, Any]) -> Any:
        return [values[name] for name in self._order] if self._order else values


def _converter(kind: Any, dialect: sa.Dialect) -> Callable[[Any], Any] | None:
    stored = kind.dialect_impl(dialect)
    found: Callable[[Any], Any] | None = stored.bind_processor(dialect)
    return found


def _as_it_is(value: T) -> T:
    return value


class _Query(_Prepared):
    """A query as a driver takes it, and what its rows mean."""

    def __init__(
        self, query: _Select, dialect: sa.Dialect, shape: tuple[_Parameter, ...]
    ) -> None:
        lists = {name: length and [None] * length for name, length in shape}
        super().__init__(_compile(query, dialect), dialect, lists)
        self._query = query
        self._dialect = dialect
        self._make: Callable[[Sequence[Any]], Sequence[Any]] | None = None

    def arrange(self, parameters: Mapping[str, Any]) -> Any:
        """Return the values of parameters as the driver takes them."""
        values = {**self._constants, **parameters}
        for name, members in self._members:
            values.update(zip(members, values.pop(name), strict=True))
        return self._in_order(values)

    def read(self, cursor: Any) -> Sequence[Any]:
        """Return the rows that a cursor gives, as named tuples."""
        if self._make is None:
            # The driver says of which types they are, the same ones each time.
            codes = [each[1] for each in cursor.description]
            self._make = _maker(self._query, self._dialect, codes)
        return list(map(self._make, cursor.fetchall()))


class _Write(_Prepared):
    """A statement that writes as a driver takes it."""

    def __init__(
        self, statement: _Change, dialect: sa.Dialect, names: tuple[str, ...]
    ) -> None:
        compiled: Any = statement.compile(dialect=dialect, column_keys=list(names))
        if any(each.expanding and each.key in names for each in compiled.bind_names):
            raise ValueError(f"it has a list as a parameter: {statement}")
        inserted, updated = compiled.insert_prefetch, compiled.update_prefetch
        self._defaults = [
            *((each.key, _maker_of(each.default)) for each in inserted),
            *((each.key, _maker_of(each.onupdate)) for each in updated),
        ]
        made = [name for name, _ in self._defaults]
        super().__init__(compiled, dialect, dict.fromkeys(names), made)
        self._stored = [
            (name, convert)
            for name, convert in self._converters.items()
            if name in names or name in made
        ]

    def arrange(self, row: Mapping[str, Any]) -> Any:
        """Return the values of a row as the driver takes them."""
        values = {**self._constants, **row}
        for name, make_default in self._defaults:
            values[name] = make_default()
        for name, convert in self._stored:
            values[name] = convert(values[name])
        return self._in_order(values)


def _maker_of(default: Any) -> Callable[[], Any]:
    """Return what makes the default of a column, a constant or of a function."""
    if default.is_callable:
        # It may look at the statement, in SQLAlchemy's terms; ours do not.
        return functools.partial(default.arg, None)
    return lambda: default.arg


@functools.lru_cache(maxsize=256)
def _compile(query: _Select, dialect: sa.Dialect) -> Any:
    return query.compile(dialect=dialect)


# Queries with several lists have many shapes.
_prepare = functools.lru_cache(maxsize=1024)(_Query)
_prepare_write = functools.lru_cache(maxsize=256)(_Write)


def _maker(
    query: _Select, dialect: sa.Dialect, codes: Sequence[Any]
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

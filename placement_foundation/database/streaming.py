"""Reading so many rows that only some of them should be in memory at a time."""

import contextlib
from collections.abc import Generator, Iterator, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa

from placement_foundation.database import storage

# How many rows are in memory at a time.
ROWS = 5_000
# How long a server may send the rows of a query, including the time that we take for
# them. For a cursor, each part of the rows is a statement with a limit of its own.
_LIMIT = "10min"
_usual = sa.func.current_setting("statement_timeout")
_SET_LIMIT = sa.select(
    _usual,
    sa.func.set_config(
        "statement_timeout", sa.case((_usual == "0", "0"), else_=_LIMIT), sa.true()
    ),
)
_RESET_LIMIT = sa.select(
    sa.func.set_config("statement_timeout", sa.bindparam("usual"), sa.true())
)

_Query: TypeAlias = sa.Select[*tuple[Any, ...]]


def stream(connection: sa.Connection, query: _Query) -> Iterator[Sequence[Any]]:
    """Return the rows of a query, as the driver makes them.

    They are to be read to the end before the connection is used again.

    :param connection: one of a ``Database``
    :raises sqlalchemy.exc.DBAPIError: the database failed
    """
    read = _sent_ahead if _sends_ahead(connection) else _asked_for
    rows = read(connection, query)
    storage.before_end(connection, rows.close)
    return rows


def _sends_ahead(connection: sa.Connection) -> bool:
    """Return whether the driver can take rows while the server goes on working."""
    if connection.dialect.driver != "psycopg":
        return False
    import psycopg

    # It needs the libraries of PostgreSQL 17; older versions do not even ask for them.
    capabilities = getattr(psycopg, "capabilities", None)
    has_chunks = getattr(capabilities, "has_stream_chunked", lambda: False)
    return bool(has_chunks())


def _asked_for(
    connection: sa.Connection, query: _Query
) -> Generator[Sequence[Any], None, None]:
    """Ask for some rows when those before them have been worked on."""
    options = {"yield_per": ROWS}
    with contextlib.closing(
        connection.execute(query, execution_options=options)
    ) as rows:
        yield from rows


def _sent_ahead(
    connection: sa.Connection, query: _Query
) -> Generator[Sequence[Any], None, None]:
    """Let a server send rows on while those before them are being worked on.

    With a cursor it would begin with the next ones when it is asked for them. The
    events of SQLAlchemy do not see such a query.
    """
    dialect: Any = connection.dialect
    compiled = query.compile(dialect=dialect)
    usual, _ = connection.execute(_SET_LIMIT).one()
    driven: Any = connection.connection.driver_connection
    errors = dialect.dbapi.Error
    try:
        with driven.cursor() as cursor:
            yield from cursor.stream(str(compiled), compiled.params, size=ROWS)
    except errors as exc:
        is_lost = dialect.is_disconnect(exc, driven, None)
        if is_lost:
            connection.invalidate(exc)
        raise sa.exc.DBAPIError.instance(
            str(compiled),
            None,
            exc,
            errors,
            connection_invalidated=is_lost,
            dialect=dialect,
        ) from exc
    connection.execute(_RESET_LIMIT, {"usual": usual})

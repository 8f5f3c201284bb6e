"""Reading so many rows that only some of them should be in memory at a time."""

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

# How many rows are in memory at a time.
ROWS = 5_000


def stream(
    connection: sa.Connection, query: sa.Select[*tuple[Any, ...]]
) -> Iterator[Sequence[Any]]:
    """Yield the rows of a query.

    They are to be read to the end before the connection is used again. The limit of
    time for a statement does not apply to them.

    :raises sqlalchemy.exc.DBAPIError: the database failed
    """
    if _sends_ahead(connection):
        yield from _sent_ahead(connection, query)
    else:
        yield from connection.execute(query, execution_options={"yield_per": ROWS})


def _sends_ahead(connection: sa.Connection) -> bool:
    """Return whether the driver can take rows while the server goes on working."""
    if connection.dialect.driver != "psycopg":
        return False
    import psycopg

    # It needs the libraries of PostgreSQL 17; older versions do not even ask for them.
    capabilities = getattr(psycopg, "capabilities", None)
    has_chunks = getattr(capabilities, "has_stream_chunked", lambda: False)
    return bool(has_chunks())


def _sent_ahead(
    connection: sa.Connection, query: sa.Select[*tuple[Any, ...]]
) -> Iterator[Sequence[Any]]:
    """Let a server send rows on while those before them are being worked on.

    With a cursor it would begin with the next ones when it is asked for them.
    """
    # The server counts the time that we take, too.
    connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
    dialect: Any = connection.dialect
    compiled = query.compile(dialect=dialect)
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

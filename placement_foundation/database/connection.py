"""Connections of the pool: one for a transaction, one for a single query."""

import time
from collections.abc import Callable
from typing import Any, NoReturn

import sqlalchemy as sa


class AnotherQuery(BaseException):
    """Work that was to take one query takes more than that.

    Only who lets it begin again, in a transaction, may catch it.
    """


class Connection(sa.Connection):
    """A connection of the pool, for one transaction, which the first statement begins.

    Whatever is not committed when it is closed is rolled back.

    ``made_at`` is when it was made, by ``time.monotonic``. ``notes`` end with the
    transaction: another attempt does not find them, nor does the next transaction with
    the same connection of the pool.

    :param begun_by: the statement that begins the transaction, or its kind if the
        driver sends that statement; None if nothing needs to be said
    """

    def __init__(self, engine: sa.Engine, begun_by: str | None) -> None:
        self.made_at = time.monotonic()
        self.notes: dict[Any, Any] = {}
        self.begun_by = begun_by
        super().__init__(engine)


class OneQuery:
    """A connection that lets the driver execute one query, and no more.

    There is no transaction, which is as good as one with a single query. A second query
    would see another moment, so it raises ``AnotherQuery``, and so does whatever else
    is asked of a connection: only ``take`` is for the query, by ``direct.fetch_all``.

    A connection of SQLAlchemy takes longer than such a query. ``made_at`` and ``notes``
    are as in ``Connection``.

    :param begin_nothing: keeps the driver from beginning a transaction by itself
    """

    def __init__(
        self,
        engine: sa.Engine,
        begin_nothing: Callable[[sa.Dialect, sa.PoolProxiedConnection], None] | None,
    ) -> None:
        self.made_at = time.monotonic()
        self.notes: dict[Any, Any] = {}
        self.engine = engine
        self.dialect = engine.dialect
        self.dispatch = engine.dispatch
        self._begin_nothing = begin_nothing
        self._taken: sa.PoolProxiedConnection | None = None
        self._handler: sa.Connection | None = None

    def take(self) -> sa.PoolProxiedConnection:
        """Return a connection of the pool, ready for the query.

        :raises AnotherQuery: there was one
        """
        if self._taken:
            raise AnotherQuery
        try:
            taken = self.engine.raw_connection()
        except self.dialect.loaded_dbapi.Error as exc:
            sa.Connection._handle_dbapi_exception_noconnection(
                exc, self.dialect, self.engine
            )
        self._taken = taken
        if self._begin_nothing:
            self._begin_nothing(self.dialect, taken)
        return taken

    def _handle_dbapi_exception(self, *about: Any) -> NoReturn:
        """Raise an error of the driver as SQLAlchemy does, which may then hang up."""
        self._handler = sa.Connection(self.engine, self._taken)
        self._handler._handle_dbapi_exception(*about)

    def __getattr__(self, name: str) -> NoReturn:
        raise AnotherQuery

    def __enter__(self) -> "OneQuery":
        return self

    def __exit__(self, *unused: object) -> None:
        if opened := self._handler or self._taken:
            opened.close()


def take(connection: Any) -> sa.PoolProxiedConnection:
    """Return what the pool gave for a connection, ready for a query.

    That begins a transaction, unless the connection is for one query.

    :raises AnotherQuery: it is, and there was one
    """
    if isinstance(connection, OneQuery):
        return connection.take()
    if not connection.in_transaction():
        connection.begin()
    proxied: sa.PoolProxiedConnection = connection.connection
    return proxied


def begun_by_of(connection: sa.Connection) -> str | None:
    """Return what begins the transaction of a connection, if it says so."""
    return connection.begun_by if isinstance(connection, Connection) else None

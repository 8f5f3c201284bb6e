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
    """A connection of the pool that lets the driver execute one query, and no more.

    There is no transaction, which is as good as one with a single query. A second query
    would see another moment. So whoever wants to execute one, or anything in another
    way than by ``direct.fetch_all``, gets ``AnotherQuery``.

    A connection of SQLAlchemy takes longer than such a query. Of this one, the pool
    gives nothing before the query. ``made_at`` and ``notes`` are as in ``Connection``.

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

    @property
    def connection(self) -> sa.PoolProxiedConnection:
        """What the pool gives, ready for the query.

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


def is_for_one_query(connection: object) -> bool:
    """Return whether a connection is for one query without a transaction."""
    return isinstance(connection, OneQuery)


def begun_by_of(connection: sa.Connection) -> str | None:
    """Return what begins the transaction of a connection, if it says so."""
    return connection.begun_by if isinstance(connection, Connection) else None

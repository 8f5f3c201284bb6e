"""What a connection knows of the one transaction that it is for."""

import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa


class AnotherQuery(BaseException):
    """One query was executed without a transaction, and now there is another one.

    Only who lets the work begin again may catch it: the connection is of no use any
    more.
    """


class OneQuery:
    """Lets the driver execute the first query of a connection without a transaction.

    That is as good as one with a single query. A second query would see another moment,
    so it is refused, and all of the work has to be done again in a transaction. What
    SQLAlchemy executes always has one.

    :param begin_nothing: keeps the driver from beginning a transaction by itself
    """

    def __init__(
        self, begin_nothing: Callable[[sa.Connection], None] | None = None
    ) -> None:
        self._begin_nothing = begin_nothing
        self._is_executed = False

    def execute_next(self, connection: sa.Connection) -> None:
        """Make ready for the query.

        :raises AnotherQuery: it was executed
        """
        self.check()
        if self._begin_nothing:
            self._begin_nothing(connection)
        self._is_executed = True

    def check(self) -> None:
        """Check that a transaction can still see all that was seen before.

        :raises AnotherQuery: the query was executed
        """
        if self._is_executed:
            raise AnotherQuery


class Connection(sa.Connection):
    """A connection of the pool, for one transaction, which the first statement begins.

    Whatever is not committed when it is closed is rolled back.

    ``made_at`` is when it was made, by ``time.monotonic``. ``notes`` end with the
    transaction: another attempt does not find them, nor does the next transaction with
    the same connection of the pool.

    :param begun_by: the statement that begins the transaction, or its kind if the
        driver sends that statement; None if nothing needs to be said
    :param one_query: lets it execute one query without a transaction
    """

    def __init__(
        self, engine: sa.Engine, begun_by: str | None, one_query: OneQuery | None = None
    ) -> None:
        self.made_at = time.monotonic()
        self.notes: dict[Any, Any] = {}
        self.begun_by = begun_by
        self.one_query = one_query
        super().__init__(engine)


def begun_by_of(connection: sa.Connection) -> str | None:
    """Return what begins the transaction of a connection, if it says so."""
    return connection.begun_by if isinstance(connection, Connection) else None


def one_query_of(connection: sa.Connection) -> OneQuery | None:
    """Return what lets a connection execute one query without a transaction."""
    return connection.one_query if isinstance(connection, Connection) else None

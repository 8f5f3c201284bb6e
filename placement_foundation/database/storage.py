"""Where transactions begin, end and are retried."""

import contextlib
import dataclasses
import functools
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from oslo_log import log
from sqlalchemy import orm
from sqlalchemy.dialects import mysql, postgresql, sqlite

from placement_foundation import errors
from placement_foundation.database import engine, sequence, trouble
from placement_foundation.observing import telemetry
from placement_foundation.option import DatabaseSettings

LOG = log.getLogger(__name__)
T = TypeVar("T")
R = TypeVar("R")

# Well below the number of parameters that any database takes in one statement.
CHUNK = 5000

# How long a request waits for others that hold its rows, in seconds: no longer than
# most clients wait for an answer.
PATIENCE = 30
# How many times a write is attempted.
ATTEMPTS = 20
# How long work on the whole database waits for locks, in seconds.
UNHURRIED = 3600
# How transactions begin, whatever the server's defaults are. Readers see a snapshot:
# all statements of a request agree with each other. Writers see what was committed
# when each statement starts: what is read under a lock is current.
READ, WRITE = "read", "write"
# A single query agrees with itself, and needs no transaction.
FETCH = "fetch"
# Executed before the first statement. Writers on MySQL need nothing, since its
# sessions are theirs, and PostgreSQL never does: its drivers say how a transaction
# begins in the BEGIN that they send anyway.
PREAMBLE = {
    ("sqlite", READ): "BEGIN",
    ("sqlite", WRITE): "BEGIN IMMEDIATE",
    ("mysql", READ): "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
}
# For drivers of PostgreSQL: the isolation, and whether a transaction only reads.
BEGINNINGS = {
    READ: ("REPEATABLE READ", True),
    WRITE: ("READ COMMITTED", False),
    FETCH: ("AUTOCOMMIT", False),
}
# The longest pause before a transaction is run again, in seconds.
LONGEST_PAUSE = 1.0


def chunks(values: Iterable[T], size: int = CHUNK) -> list[list[T]]:
    """Split values into lists that fit into one statement."""
    listed = list(values)
    return [listed[start : start + size] for start in range(0, len(listed), size)]


def analyse(connection: sa.Connection, tables: Iterable[sa.Table]) -> None:
    """Let a server gather statistics of tables that were just filled.

    Without them, which may take minutes to come, it may choose a wrong index.
    """
    dialect = connection.dialect
    keyword = {"postgresql": "ANALYZE", "sqlite": None}.get(
        dialect.name, "ANALYZE TABLE"
    )
    for table in tables if keyword else ():
        name = dialect.identifier_preparer.format_table(table)
        connection.exec_driver_sql(f"{keyword} {name}").close()


def insert_missing(
    connection: sa.Connection,
    model: type[orm.DeclarativeBase],
    rows: Sequence[Mapping[str, Any]],
) -> None:
    """Insert rows, leaving out those that already exist according to a unique key.

    It waits for other transactions that are inserting the same rows, so afterwards the
    rows exist. Sort the rows: two transactions that insert the same ones may otherwise
    deadlock.
    """
    if not rows:
        return
    dialect = connection.dialect.name
    statement: Any
    if dialect in ("mysql", "mariadb"):
        # IGNORE would also ignore values that do not fit.
        statement = mysql.insert(model)
        statement = statement.on_duplicate_key_update(
            created_at=sa.literal_column("created_at")
        )
    else:
        insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
        statement = insert(model).on_conflict_do_nothing(
            index_elements=_unique_columns(model, rows[0])
        )
    connection.execute(statement, rows)


def _unique_columns(
    model: type[orm.DeclarativeBase], row: Mapping[str, Any]
) -> list[str] | None:
    """Return the columns by which a row counts as existing; None if its id counts, too.

    If PostgreSQL draws an id that is taken, that is a fault, not an existing row.
    """
    table = cast(sa.Table, model.__table__)
    if any(column.key in row for column in table.primary_key):
        return None
    [unique] = [each for each in table.constraints if type(each) is sa.UniqueConstraint]
    return unique.columns.keys()


def select_each(
    connection: sa.Connection,
    query: sa.Executable,
    name: str,
    values: Iterable[Any],
    **parameters: Any,
) -> list[Any]:
    """Return the rows of a query for values, in as many statements as these need.

    :param name: the parameter of the query that is a list of the values
    :param parameters: the other parameters
    """
    return [
        row
        for chunk in chunks(values)
        for row in connection.execute(query, {name: chunk, **parameters})
    ]


def lock_rows(
    connection: sa.Connection,
    key: orm.InstrumentedAttribute[int],
    ids: Iterable[int],
) -> list[int]:
    """Lock rows until this transaction ends, and return the ids of those still there.

    They are locked in the order of their ids. Other transactions may still add rows
    that refer to them.

    :param key: the primary key of the table
    """
    return [
        row[0] for row in select_each(connection, _locking(key), "ids", sorted(ids))
    ]


@functools.cache
def _locking(key: orm.InstrumentedAttribute[int]) -> sa.Select[int]:
    """Return the query for ``lock_rows``."""
    query = sa.select(key).where(key.in_(sa.bindparam("ids", expanding=True)))
    query = query.order_by(key).with_for_update(key_share=True)
    for dialect in ("mysql", "mariadb"):
        # Without the hint it may read the whole of a small table, and wait for each row
        # on the way that another transaction has locked.
        query = query.with_hint(key.class_, "FORCE INDEX (PRIMARY)", dialect)
    return query


def delete_each(
    connection: sa.Connection, column: orm.InstrumentedAttribute[T], values: Iterable[T]
) -> None:
    """Delete the rows that have one of the values in a column with an index."""
    # Given many values at once, MariaDB may read the whole table, and wait for each row
    # on the way that another transaction has locked.
    rows = [{"wanted": value} for value in values]
    if rows:
        connection.execute(_deletion(column), rows)


@functools.cache
def _deletion(column: orm.InstrumentedAttribute[Any]) -> sa.Delete:
    return sa.delete(column.parent.class_).where(column == sa.bindparam("wanted"))


class Database:
    """The database: runs a function of a connection in a transaction."""

    def __init__(self, connected: sa.Engine, settings: DatabaseSettings) -> None:
        # Otherwise the first queries configure them, perhaps in two threads at once.
        orm.configure_mappers()
        self.engine = connected
        self._settings = settings
        most = settings.max_transactions
        self._turns = threading.BoundedSemaphore(most) if most else None

    def rest(self) -> None:
        """Close the connections, until they are needed again.

        A process that forks must have none: neither SQLite nor a server can distinguish
        two processes that share a connection. A database in memory is kept.
        """
        if not engine.is_in_memory(self.engine.url):
            self.engine.dispose()

    @contextlib.contextmanager
    def unhurried(self) -> Iterator[sa.Engine]:
        """Yield an engine without time limits, for work on the whole database."""
        if self.engine.dialect.name == "sqlite":
            yield self.engine
            return
        patient = dataclasses.replace(
            self._settings, lock_timeout=UNHURRIED, statement_timeout=0
        )
        connected = engine.connect(patient)
        try:
            yield connected
        finally:
            connected.dispose()

    @contextlib.contextmanager
    def patient(self) -> Iterator["Database"]:
        """Yield the same database without time limits, for work on the whole of it."""
        with self.unhurried() as connected:
            yield Database(connected, self._settings)

    def answers(self) -> bool:
        """Check that the database can be reached at all.

        :raises Exception: it cannot
        """
        return self.look(lambda connection: connection.scalar(sa.select(1)) == 1)

    def look(self, work: Callable[[sa.Connection], T]) -> T:
        """Run ``work`` as ``read`` does, but once, and without waiting for a turn.

        It is for checks of the database.

        :raises Exception: the transaction failed
        """
        return self._read_once(work)

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Run ``work``, which reads one snapshot and changes nothing, in a transaction.

        :raises ConcurrentUpdate: each of a few attempts lost a race against a writer
        :raises DatabaseUnavailable: the database cannot be reached, or is too slow
        """
        return self._retried(self._read_once, work, attempts=3)

    def fetch(self, work: Callable[[sa.Connection], T]) -> T:
        """Run ``work``, which executes one query, without a transaction around it.

        That takes PostgreSQL one round trip instead of three; else, it is as ``read``.
        """
        return self._retried(self._fetch_once, work, attempts=3)

    def write(
        self, work: Callable[[sa.Connection], T], *, attempts: int = ATTEMPTS
    ) -> T:
        """Run ``work`` until it commits, at most ``attempts`` times in ``PATIENCE``.

        ``work`` is called again from the start, so it must take everything it needs
        from the connection and keep nothing between two calls.

        :raises ConcurrentUpdate: each attempt lost a race
        :raises BadRequest: the database cannot store a value
        :raises DatabaseUnavailable: the database cannot be reached, is read-only, or
            other transactions hold locks for too long
        """
        return self._retried(self._write_once, work, attempts=attempts)

    def _retried(
        self,
        run_once: Callable[[Callable[[sa.Connection], T]], R],
        work: Callable[[sa.Connection], T],
        attempts: int,
    ) -> R:
        deadline = time.monotonic() + PATIENCE
        reconnected = False
        for attempt in range(1, attempts + 1):
            try:
                with telemetry.step("transaction"), self._turn():
                    return run_once(work)
            except errors.ServiceError:
                raise
            except Exception as exc:
                LOG.debug("attempt %s of %s failed: %s", attempt, attempts, exc)
                again = attempt < attempts and time.monotonic() < deadline
                if trouble.is_lost_connection(exc):
                    again = again and not reconnected
                    reconnected = True
                behind = sequence.table_behind(exc)
                if behind:
                    sequence.catch_up(self.engine, behind)
                if trouble.is_plan_spoilt(exc):
                    # Each connection has plans of its own.
                    self.engine.dispose()
                cause = trouble.name_cause(exc)
                telemetry.record(telemetry.TRANSACTION_FAILURES, cause=cause)
                self._check_worth(exc, again)
                telemetry.record(telemetry.TRANSACTION_RETRIES, cause=cause)
            # Transactions that lost to each other would collide again without a pause.
            time.sleep(_pause(attempt))
        raise ValueError("a transaction is attempted at least once")

    def _check_worth(self, exc: Exception, again: bool) -> None:
        """Return if a failed transaction is worth another attempt, and raise if not.

        :param again: whether another attempt is allowed
        """
        if trouble.is_unstorable(exc):
            raise errors.BadRequest(
                "The database cannot store a value of this request."
            ) from exc
        if trouble.is_unmigrated(exc):
            raise errors.DatabaseUnavailable(
                "The database lacks a table or a column that this release needs: "
                "an operator has to migrate it, with the command 'db sync'."
            ) from exc
        if trouble.is_lost_race(exc):
            if not again:
                raise _give_up(exc) from exc
        elif not trouble.is_unavailable(exc):
            raise exc
        elif not (again and trouble.is_lost_connection(exc)):
            raise _unavailable() from exc

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Take one of the turns, if their number is limited.

        :raises DatabaseUnavailable: no other turn ended in time
        """
        turns = self._turns
        if turns and not turns.acquire(timeout=self._settings.lock_timeout):
            raise errors.DatabaseUnavailable(
                "Too many requests wait for the database. Please retry."
            )
        try:
            yield
        finally:
            if turns:
                turns.release()

    def _read_once(self, work: Callable[[sa.Connection], T]) -> T:
        with self._transaction(READ) as connection:
            result = work(connection)
            if self.engine.dialect.driver == "psycopg":
                # After a rollback it drops its list of prepared statements, and the
                # server would plan each of them again.
                connection.commit()
            return result

    def _fetch_once(self, work: Callable[[sa.Connection], T]) -> T:
        with self._transaction(FETCH) as connection:
            return work(connection)

    def _write_once(self, work: Callable[[sa.Connection], T]) -> T:
        with self._transaction(WRITE) as connection:
            result = work(connection)
            try:
                connection.commit()
            except Exception as exc:
                if trouble.is_unavailable(exc):
                    # The connection may still be in the transaction.
                    connection.invalidate(exc)
                if trouble.is_lost_connection(exc):
                    # It may have been committed, so it is not run again.
                    raise _unavailable() from exc
                raise
            return result

    @contextlib.contextmanager
    def _transaction(self, kind: str) -> Iterator[sa.Connection]:
        """Yield a connection in a transaction.

        Whatever is not committed is rolled back.
        """
        name = self.engine.dialect.name.replace("mariadb", "mysql")
        with self.engine.connect() as connection:
            if name == "postgresql":
                isolation, reads_only = BEGINNINGS[kind]
                connection.execution_options(
                    isolation_level=isolation, postgresql_readonly=reads_only
                )
            try:
                if (name, kind) in PREAMBLE:
                    connection.exec_driver_sql(PREAMBLE[name, kind])
                yield connection
            except Exception:
                if name == "sqlite" and not engine.is_in_memory(self.engine.url):
                    # The traceback may hold a statement that is not read to the end. It
                    # keeps its snapshot past the end of the transaction, and later ones
                    # on the same connection would read old data.
                    connection.invalidate()
                raise


def _give_up(exc: Exception) -> errors.ServiceError:
    """Return the error for a transaction that has lost too many races."""
    if trouble.is_busy(exc):
        return _unavailable()
    return errors.ConcurrentUpdate(
        "Other requests kept changing the same data. Please retry."
    )


def _unavailable() -> errors.DatabaseUnavailable:
    return errors.DatabaseUnavailable(
        "The database is not available at the moment. Please retry."
    )


def _pause(attempt: int) -> float:
    """Return how long to wait after a number of attempts, in seconds.

    The pause grows, so that many transactions that want the same rows get through, and
    it is random, so that they do not collide again.
    """
    longest: float = min(LONGEST_PAUSE, 0.01 * 2**attempt)
    return random.uniform(longest / 2, longest)


def connect(settings: DatabaseSettings) -> Database:
    """Return the database that the settings name.

    For a server, wait until it accepts a connection, for as many attempts as set.
    """
    return Database(engine.connect(settings), settings)

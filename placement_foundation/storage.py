"""Where transactions begin, end and are retried."""

import contextlib
import dataclasses
import logging
import random
import sqlite3
import time
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import engines, exc_filters
from oslo_log import log
from sqlalchemy import orm
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.orm import Session

from placement_foundation import errors
from placement_foundation.option import DatabaseSettings

LOG = log.getLogger(__name__)
T = TypeVar("T")
R = TypeVar("R")

# How long a SQLite connection waits for its turn to write, in seconds.
SQLITE_PATIENCE = 30

# Well below the number of parameters that any database takes in one statement.
CHUNK = 5000

# The drivers of each server, the one that is asked for and tested first.
DRIVERS = {
    "postgresql": ("psycopg", "psycopg2"),
    "mysql": ("pymysql", "mysqldb"),
    "mariadb": ("pymysql", "mysqldb"),
}

# What a transaction says before its first statement. Readers see one moment, so that
# the statements of one request agree with each other; writers see what was committed
# when each statement starts, so that what is read under a lock is current.
READ, WRITE = "read", "write"
PREAMBLE = {
    ("sqlite", READ): "BEGIN",
    ("sqlite", WRITE): "BEGIN IMMEDIATE",
    ("postgresql", READ): "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    ("mysql", WRITE): "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
}

# What MySQL says of characters that a column cannot hold, when they are compared with
# it: a table that another service made may be in latin1.
MYSQL_FOREIGN_CHARACTERS = [(1267,), (1270,), (1271,)]


class LostRaceError(Exception):
    """Another transaction was faster, and this one has to begin anew.

    For work that finds out by itself; what the database finds out, it says by its own
    errors.
    """


def is_lost_race(exc: Exception) -> bool:
    """Tell whether a transaction failed only because another one was faster."""
    if isinstance(exc, LostRaceError):
        return True
    # What a row refers to is seen first, so it can only be missing if it went since.
    if isinstance(
        exc, db_exc.DBDeadlock | db_exc.DBDuplicateEntry | db_exc.DBReferenceError
    ):
        return True
    cause = _driver_error(exc)
    if isinstance(cause, sqlite3.OperationalError):
        return "locked" in str(cause) or "busy" in str(cause)
    # 40001 is SQL's serialization_failure, 40P01 PostgreSQL's deadlock_detected.
    return getattr(cause, "sqlstate", None) in ("40001", "40P01")


def is_unstorable(exc: Exception) -> bool:
    """Tell whether a value is one that the database has no way to store."""
    if isinstance(exc, db_exc.DBDataError | db_exc.DBInvalidUnicodeParameter):
        return True
    cause = _driver_error(exc)
    if getattr(cause, "args", ())[:1] in MYSQL_FOREIGN_CHARACTERS:
        return True
    # Each driver has a class of that name, as the database interface asks for.
    ancestry = type(cause).__mro__
    return any(ancestor.__name__ == "DataError" for ancestor in ancestry)


def _driver_error(exc: Exception) -> object:
    """Return what the driver raised, from beneath oslo.db and SQLAlchemy."""
    inner = getattr(exc, "inner_exception", None) or exc
    return getattr(inner, "orig", None) or inner


def chunks(values: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """Split values into lists that fit into one statement."""
    listed = list(values)
    for start in range(0, len(listed), size):
        yield listed[start : start + size]


def insert_missing(
    session: Session,
    model: type[orm.DeclarativeBase],
    rows: Sequence[Mapping[str, Any]],
) -> None:
    """Insert rows, leaving out those that a unique key says are there already.

    It waits for other transactions that are inserting the same rows, so afterwards
    the rows are there. Sort the rows, or two who insert the same ones may deadlock.
    """
    if not rows:
        return
    dialect = session.get_bind().dialect.name
    statement: Any
    if dialect in ("mysql", "mariadb"):
        # IGNORE would also ignore values that do not fit.
        statement = mysql.insert(model)
        statement = statement.on_duplicate_key_update(
            created_at=sa.literal_column("created_at")
        )
    else:
        insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
        statement = insert(model).on_conflict_do_nothing()
    session.connection().execute(statement, rows)


def lock_rows(
    session: Session,
    columns: sa.Select[*tuple[Any, ...]],
    key: orm.InstrumentedAttribute[int],
    ids: Collection[int],
) -> Sequence[Any]:
    """Return rows that nobody else changes until this transaction ends.

    They are locked, and returned, in the order of their ids. Others may still add rows
    that refer to them.

    :param columns: what is read of each row once it is locked
    :param key: the primary key of the table
    """
    query = columns.where(key.in_(ids)).order_by(key)
    query = query.with_for_update(key_share=True)
    for dialect in ("mysql", "mariadb"):
        # Left to itself it may read the whole of a small table, and waits for each row
        # on the way that somebody else has locked.
        query = query.with_hint(key.class_, "FORCE INDEX (PRIMARY)", dialect)
    return session.connection().execute(query).all()


def delete_each(
    session: Session, column: orm.InstrumentedAttribute[T], values: Iterable[T]
) -> None:
    """Delete the rows that have one of the values in a column with an index."""
    # Given many values at once, MariaDB may read the whole table, and waits for each
    # row on the way that somebody else has locked.
    rows = [{"wanted": value} for value in values]
    if rows:
        delete = sa.delete(column.parent.class_)
        delete = delete.where(column == sa.bindparam("wanted"))
        session.connection().execute(delete, rows)


@dataclasses.dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """What was read in a transaction that goes on until it is closed."""

    value: T
    close: Callable[[], None]


class Database:
    """The database: hand it a function of a session, and it runs in a transaction."""

    def __init__(self, engine: sa.Engine) -> None:
        self._readers = orm.sessionmaker(_with_preamble(engine, READ), autoflush=False)
        self._writers = orm.sessionmaker(_with_preamble(engine, WRITE), autoflush=False)
        self.engine = engine

    def rest(self) -> None:
        """Close the connections, until they are needed again.

        A process that forks must have none: neither SQLite nor a server can tell who
        speaks on one that two processes share. A database in memory is kept.
        """
        if not _is_in_memory(self.engine.url):
            self.engine.dispose()

    def read(self, work: Callable[[Session], T]) -> T:
        """Run ``work`` in a transaction that sees one moment and changes nothing.

        :raises ConcurrentUpdate: each of a few attempts lost a race against a writer
        """
        return self._retried(self._read_once, work, attempts=3)

    def begin_reading(self, work: Callable[[Session], T]) -> Reading[T]:
        """Run ``work`` as ``read`` does, in a transaction that stays open.

        It is for what goes on reading while its result is used.

        :raises ConcurrentUpdate: each of a few attempts lost a race against a writer
        """
        return self._retried(self._begin_reading_once, work, attempts=3)

    def write(self, work: Callable[[Session], T], *, attempts: int = 10) -> T:
        """Run ``work`` until it commits, at most ``attempts`` times.

        ``work`` is called again from the start, so it must take everything it
        needs from the session and keep nothing between two calls.

        :raises ConcurrentUpdate: each attempt lost a race
        :raises BadRequest: the database has no way to store a value
        """
        return self._retried(self._write_once, work, attempts=attempts)

    def _retried(
        self,
        run_once: Callable[[Callable[[Session], T]], R],
        work: Callable[[Session], T],
        attempts: int,
    ) -> R:
        for attempt in range(1, attempts + 1):
            try:
                return run_once(work)
            except errors.ServiceError:
                raise
            except Exception as exc:
                if is_unstorable(exc):
                    raise errors.BadRequest(
                        "The database has no way to store a value of this request."
                    ) from exc
                if not is_lost_race(exc):
                    raise
                LOG.debug("lost a race, attempt %s of %s: %s", attempt, attempts, exc)
                if attempt == attempts:
                    raise errors.ConcurrentUpdate(
                        "Other requests kept changing the same data. Please retry."
                    ) from exc
            # Both sides of a deadlock would meet again if they came back at once.
            time.sleep(random.uniform(0, 0.01 * attempt))
        raise ValueError("a transaction is attempted at least once")

    def _read_once(self, work: Callable[[Session], T]) -> T:
        with self._readers() as session:
            return work(session)

    def _begin_reading_once(self, work: Callable[[Session], T]) -> Reading[T]:
        session = self._readers()
        try:
            return Reading(work(session), session.close)
        except BaseException:
            session.close()
            raise

    def _write_once(self, work: Callable[[Session], T]) -> T:
        with self._writers.begin() as session:
            return work(session)


def connect(settings: DatabaseSettings) -> Database:
    """Return the database that the settings name.

    The server is asked for a connection at once, as often as the settings say.
    """
    # It writes a traceback for whatever it does not know. All of it is raised as well,
    # and told by those who handle it.
    logging.getLogger("oslo_db.sqlalchemy.exc_filters").setLevel(logging.CRITICAL)
    url = sa.engine.make_url(settings.connection)
    if settings.connection_parameters:
        url = url.update_query_string(settings.connection_parameters, append=True)
    if url.get_backend_name() not in (*DRIVERS, "sqlite"):
        raise ValueError(
            f"{url.get_backend_name()} is none of sqlite, {', '.join(DRIVERS)}"
        )
    if url.get_backend_name() == "sqlite":
        return Database(_sqlite_engine(url, settings))
    return Database(_server_engine(url, settings))


def _server_engine(url: sa.URL, settings: DatabaseSettings) -> sa.Engine:
    if url.get_backend_name() in ("mysql", "mariadb") and "charset" not in url.query:
        url = url.update_query_dict({"charset": "utf8mb4"})
    engine: sa.Engine = engines.create_engine(
        _with_installed_driver(url),
        mysql_sql_mode=settings.mysql_sql_mode,
        connection_recycle_time=settings.connection_recycle_time,
        connection_debug=settings.connection_debug,
        connection_trace=settings.connection_trace,
        max_pool_size=settings.max_pool_size,
        max_overflow=settings.max_overflow,
        pool_timeout=settings.pool_timeout,
        max_retries=settings.max_retries,
        retry_interval=settings.retry_interval,
        thread_checkin=False,
    )
    return engine


def _with_installed_driver(url: sa.URL) -> sa.URL:
    """Return the URL with a driver that is installed, its own one if that is.

    Configuration files name ``psycopg2``, or no driver at all.
    """
    backend = url.get_backend_name()
    named = [url.drivername] if "+" in url.drivername else []
    for driver in [*named, *(f"{backend}+{name}" for name in DRIVERS[backend])]:
        candidate = url.set(drivername=driver)
        with contextlib.suppress(ImportError):
            candidate.get_dialect().import_dbapi()
            return candidate
    return url


def _is_in_memory(url: sa.URL) -> bool:
    return url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:")


def _sqlite_engine(url: sa.URL, settings: DatabaseSettings) -> sa.Engine:
    """Return an engine for the embedded database.

    oslo.db's own opens the file anew for each request and cannot begin a transaction
    as a writer.
    """
    in_memory = _is_in_memory(url)
    engine = sa.create_engine(
        url,
        connect_args={"timeout": SQLITE_PATIENCE, "check_same_thread": False},
        poolclass=sa.pool.QueuePool,
        # A database in memory is that of one connection, which threads take in turn.
        pool_size=1 if in_memory else 5,
        max_overflow=0 if in_memory else -1,
    )

    @sa.event.listens_for(engine, "connect")
    def set_up(connection: sqlite3.Connection, record: Any) -> None:
        # The driver's own BEGIN comes too late and locks too little.
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(
            f"PRAGMA synchronous = {'FULL' if settings.sqlite_synchronous else 'OFF'}"
        )

    exc_filters.register_engine(engine)
    return engine


def _with_preamble(engine: sa.Engine, kind: str) -> sa.Engine:
    """Return the engine, beginning each transaction as one that reads or writes."""
    statement = PREAMBLE.get((engine.dialect.name, kind))
    if engine.dialect.name == "mariadb":
        statement = PREAMBLE.get(("mysql", kind))
    engine = engine.execution_options()
    if statement:

        @sa.event.listens_for(engine, "begin")
        def begin(connection: sa.Connection) -> None:
            connection.exec_driver_sql(statement)

    return engine

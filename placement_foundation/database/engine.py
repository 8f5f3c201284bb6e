"""Connections to a database: drivers, how transactions begin, time limits."""

import contextlib
import itertools
import logging
import sqlite3
import time
import weakref
from collections.abc import Generator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from oslo_db.sqlalchemy import engines, exc_filters
from oslo_log import log

from placement_foundation.database import digest, trouble
from placement_foundation.option import DatabaseSettings

LOG = log.getLogger(__name__)

# The drivers for each server, the recommended and tested one first.
DRIVERS = {
    "postgresql": ("psycopg", "psycopg2"),
    "mysql": ("pymysql", "mysqldb"),
    "mariadb": ("pymysql", "mysqldb"),
}

# The longest string that MySQL may join, in bytes; its default is 1024. This is what
# MariaDB accepts at most: a strict connection refuses more.
JOINED_LENGTH = 2**30

# For sessions of MySQL.
WRITERS = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE"
# How long after its last use a connection is trusted without a ping, in seconds. If
# the connection is lost after all, the transaction begins again.
TRUSTED = 1.0
# How much longer than the server's own limit a client waits before it hangs up, in
# seconds.
GRACE = 5


def connect(settings: DatabaseSettings) -> sa.Engine:
    """Return the engine for the database that the settings name.

    For a server, wait until it accepts a connection, for as many attempts as set.
    """
    # oslo.db logs a traceback for every unknown error. All of them are raised
    # as well, and logged where they are handled.
    logging.getLogger("oslo_db.sqlalchemy.exc_filters").setLevel(logging.CRITICAL)
    url = sa.engine.make_url(settings.connection)
    if settings.connection_parameters:
        url = url.update_query_string(settings.connection_parameters, append=True)
    if url.get_backend_name() not in (*DRIVERS, "sqlite"):
        raise ValueError(
            f"{url.get_backend_name()} is not one of sqlite, {', '.join(DRIVERS)}"
        )
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url, settings)
    engine = _server_engine(url, settings)
    if settings.max_retries:
        _wait_until_reachable(engine, settings)
    return engine


def _server_engine(url: sa.URL, settings: DatabaseSettings) -> sa.Engine:
    if url.get_backend_name() in ("mysql", "mariadb"):
        if not url.database:
            raise ValueError("the URL has no name of a database")
        if "charset" not in url.query:
            url = url.update_query_dict({"charset": "utf8mb4"})
    url = _with_installed_driver(url)
    engine: sa.Engine = engines.create_engine(
        _with_limits(url, settings),
        mysql_sql_mode=settings.mysql_sql_mode,
        connection_recycle_time=settings.connection_recycle_time,
        connection_debug=settings.connection_debug,
        connection_trace=settings.connection_trace,
        max_pool_size=settings.max_pool_size,
        max_overflow=settings.max_overflow,
        pool_timeout=settings.pool_timeout,
        # With drivers that it does not support, oslo.db mistakes a refused connection
        # for another kind of error.
        max_retries=0,
        thread_checkin=False,
    )
    _limit_sessions(engine, settings)
    _ping_only_idle(engine)
    if engine.dialect.driver == "psycopg" and settings.statement_timeout:
        _limit_silence(engine, settings.statement_timeout + GRACE)
    return engine


def _with_limits(url: sa.URL, settings: DatabaseSettings) -> sa.URL:
    """Return the URL with limits on how long the client waits, if it has none."""
    limits = {}
    if settings.connect_timeout:
        limits["connect_timeout"] = str(settings.connect_timeout)
    if url.get_backend_name() != "postgresql" and settings.statement_timeout:
        silence = str(settings.statement_timeout + GRACE)
        limits |= {"read_timeout": silence, "write_timeout": silence}
    return url.update_query_dict(
        {name: value for name, value in limits.items() if name not in url.query}
    )


def _limit_sessions(engine: sa.Engine, settings: DatabaseSettings) -> None:
    """Have the server end statements that take too long."""

    @sa.event.listens_for(engine, "connect")
    def limit(connection: Any, record: Any) -> None:
        if engine.dialect.name == "postgresql":
            statement = (
                f"SET lock_timeout = '{settings.lock_timeout}s';"
                f"SET statement_timeout = '{settings.statement_timeout}s';"
                # A stream is read to the end: its first rows need not be quick.
                "SET cursor_tuple_fraction = 1"
            )
        else:
            # MariaDB limits all statements, in seconds; MySQL SELECT, in milliseconds.
            slow = (
                f"max_statement_time = {settings.statement_timeout}"
                if "MariaDB" in str(connection.get_server_info())
                else f"max_execution_time = {settings.statement_timeout * 1000}"
            )
            statement = (
                f"SET SESSION group_concat_max_len = {JOINED_LENGTH}, "
                f"innodb_lock_wait_timeout = {settings.lock_timeout}, "
                f"lock_wait_timeout = {settings.lock_timeout}, {slow}"
            )
        with contextlib.closing(connection.cursor()) as cursor:
            cursor.execute(statement)
            if engine.dialect.name != "postgresql":
                cursor.execute(WRITERS)
        # A rollback would undo the settings.
        connection.commit()


def _ping_only_idle(engine: sa.Engine) -> None:
    """Ping the server before a transaction only if the connection was idle.

    A ping takes as long as any other statement, and would precede each transaction.
    """
    ping = engine.dialect.do_ping
    returned: weakref.WeakKeyDictionary[Any, float] = weakref.WeakKeyDictionary()

    @sa.event.listens_for(engine, "checkin")
    def note(connection: Any, record: Any) -> None:
        if connection is not None:
            returned[connection] = time.monotonic()

    def is_alive(connection: Any) -> bool:
        idle = time.monotonic() - returned.get(connection, 0.0)
        return idle < TRUSTED or ping(connection)

    engine.dialect.do_ping = is_alive  # type: ignore[assignment, method-assign]


def _limit_silence(engine: sa.Engine, seconds: float) -> None:
    """Hang up on a server that does not answer at all.

    A server process that hangs cannot end its statement, while its machine keeps the
    connection alive. The driver itself has no limit for that.
    """
    import psycopg

    class Impatient(psycopg.Connection[Any]):
        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            hurried = _hurry(self, gen, seconds, psycopg.OperationalError)
            return super().wait(hurried, *args, **options)

    @sa.event.listens_for(engine, "do_connect")
    def connect_impatiently(
        dialect: Any, record: Any, arguments: list[Any], options: dict[str, Any]
    ) -> Any:
        return Impatient.connect(*arguments, **options)


def _hurry(
    connection: Any,
    waiting: Generator[Any, Any, Any],
    seconds: float,
    error: type[Exception],
) -> Generator[Any, Any, Any]:
    """Pass on the waits of a connection, and close it when one takes too long.

    :param error: the error to raise then
    """
    deadline = time.monotonic() + seconds
    try:
        event = next(waiting)
        while True:
            # Now and then nothing is ready: the driver checks on the connection itself.
            ready = yield event
            if not ready and time.monotonic() > deadline:
                connection.pgconn.finish()
                raise error("the server does not answer")
            event = waiting.send(ready)
    except StopIteration as end:
        return end.value


def _with_installed_driver(url: sa.URL) -> sa.URL:
    """Return the URL with an installed driver: the one it names, if that is installed.

    Configuration files often name ``psycopg2``, or no driver at all.

    :raises ValueError: no driver is installed
    """
    backend = url.get_backend_name()
    named = [url.drivername] if "+" in url.drivername else []
    for driver in [*named, *(f"{backend}+{name}" for name in DRIVERS[backend])]:
        candidate = url.set(drivername=driver)
        with contextlib.suppress(ImportError):
            candidate.get_dialect().import_dbapi()
            return candidate
    raise ValueError(
        f"no driver for {backend} is installed, such as {DRIVERS[backend][0]}"
    )


def is_in_memory(url: sa.URL) -> bool:
    """Return whether a URL is for a SQLite database without a file."""
    return url.get_backend_name() == "sqlite" and (
        url.database in (None, "", ":memory:") or url.query.get("mode") == "memory"
    )


def require_file(url: sa.URL) -> None:
    """Check that the file of an embedded database exists: SQLite would create it.

    :raises ValueError: it does not
    """
    # A URI of SQLite may name something else than a file, and says how it is opened.
    if url.get_backend_name() != "sqlite" or is_in_memory(url) or "uri" in url.query:
        return
    path = Path(str(url.database))
    if not path.exists():
        raise ValueError(f"there is no database at {path}")


def _sqlite_engine(url: sa.URL, settings: DatabaseSettings) -> sa.Engine:
    """Return an engine for the embedded database.

    The one of oslo.db opens the file again for each request and cannot begin a
    transaction as a writer.
    """
    in_memory = is_in_memory(url)
    engine = sa.create_engine(
        url,
        connect_args={
            "timeout": settings.lock_timeout,
            "check_same_thread": False,
        },
        poolclass=sa.pool.QueuePool,
        # A database in memory belongs to one connection, which threads use in turn.
        pool_size=1 if in_memory else 5,
        max_overflow=0 if in_memory else -1,
    )

    @sa.event.listens_for(engine, "connect")
    def set_up(connection: sqlite3.Connection, record: Any) -> None:
        # The BEGIN of the driver comes too late and locks too little.
        connection.isolation_level = None
        connection.create_function(digest.NAME, 1, digest.digest_of, deterministic=True)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(
            f"PRAGMA synchronous = {'FULL' if settings.sqlite_synchronous else 'OFF'}"
        )

    exc_filters.register_engine(engine)
    # The other parts of oslo.db's engine that apply to every database.
    engines._setup_logging(settings.connection_debug)
    if settings.connection_trace:
        engines._add_trace_comments(engine)
    return engine


def _wait_until_reachable(engine: sa.Engine, settings: DatabaseSettings) -> None:
    """Try to connect until it succeeds, at most as many times as the settings say.

    :raises sqlalchemy.exc.SQLAlchemyError: no attempt succeeded, or none ever can
    :raises oslo_db.exception.DBError: the same
    :raises ValueError: the driver does not accept a parameter of the URL
    """
    for attempt in itertools.count(1):
        try:
            engine.connect().close()
        except (TypeError, AttributeError) as exc:
            # Parameters become arguments of the driver, which may not check them.
            raise ValueError(f"a parameter of the URL is wrong: {exc}") from exc
        except Exception as exc:
            hopeless = trouble.is_refused(exc) or not trouble.is_unavailable(exc)
            if hopeless or attempt == settings.max_retries:
                raise
            LOG.warning("the database is not there yet: %s", trouble.describe(exc))
            time.sleep(settings.retry_interval)
        else:
            return

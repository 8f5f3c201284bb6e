"""The revisions of the schema: which one a database has, and how it gets the newest."""

import contextlib
import threading
from collections.abc import Iterator

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from oslo_db import exception as db_exc
from oslo_log import log

from placement.db import api

LOG = log.getLogger(__name__)

HEAD = "a082b8bb98d0"
SCRIPTS = "placement.db:alembic"

# Any number will do that nobody else uses in this database.
POSTGRESQL_LOCK = 8778_1976
# The locks of MySQL belong to the server, so their name tells the database.
MYSQL_LOCK = "concat('placement-migration-', sha1(database()))"
# How long to wait for somebody else's migration, in seconds.
PATIENCE = 3600

# Alembic keeps what it works on in the globals of its modules.
_alembic_lock = threading.Lock()


def version(database: api.Database) -> str | None:
    """Return the revision recorded in the database, None if there is no record."""
    with database.engine.connect() as connection:
        return _recorded(connection)


def upgrade(database: api.Database, revision: str = HEAD) -> None:
    """Migrate the schema to a revision. A database that has it is not touched.

    Processes and threads that start together take turns.

    :raises alembic.util.CommandError: the database has a revision nobody knows
    :raises RuntimeError: the data must be repaired first, by an online migration
    """
    if version(database) == revision:
        return
    with _exclusively(database.engine) as connection:
        # Whoever was waited for has most likely done the work.
        if _recorded(connection) != revision:
            command.upgrade(_alembic(connection), revision)


def stamp(database: api.Database, revision: str) -> None:
    """Record a revision without migrating.

    :param revision: an id or the beginning of one, ``head``, or ``base`` for no
        record at all
    :raises alembic.util.CommandError: there is no such revision
    """
    with _exclusively(database.engine) as connection:
        # What was recorded before does not matter, even if nobody knows it.
        command.stamp(_alembic(connection), revision, purge=True)


def _recorded(connection: sa.Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _alembic(connection: sa.Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", SCRIPTS)
    config.attributes["connection"] = connection
    return config


@contextlib.contextmanager
def _exclusively(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection in a transaction that no other migration runs beside."""
    wait = {
        "sqlite": _wait_on_sqlite,
        "postgresql": _wait_on_postgresql,
        "mysql": _wait_on_mysql,
        "mariadb": _wait_on_mysql,
    }[engine.dialect.name]
    with _alembic_lock, wait(engine) as connection:
        yield connection


@contextlib.contextmanager
def _wait_on_sqlite(engine: sa.Engine) -> Iterator[sa.Connection]:
    with engine.begin() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield connection


@contextlib.contextmanager
def _wait_on_postgresql(engine: sa.Engine) -> Iterator[sa.Connection]:
    with engine.begin() as connection:
        # The end of the transaction lets it go.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(POSTGRESQL_LOCK)))
        yield connection


@contextlib.contextmanager
def _wait_on_mysql(engine: sa.Engine) -> Iterator[sa.Connection]:
    # The lock has a connection of its own: it must outlive the commit.
    with engine.connect() as guard:
        try:
            got = guard.scalar(sa.text(f"SELECT get_lock({MYSQL_LOCK}, {PATIENCE})"))
        except (sa.exc.DBAPIError, db_exc.DBError) as exc:
            # A Galera cluster may refuse to lock by name.
            LOG.warning("cannot lock the migration, run one at a time: %s", exc)
            got = True
        if not got:
            raise TimeoutError("another migration takes too long")
        try:
            with engine.begin() as connection:
                yield connection
        finally:
            guard.execute(sa.text(f"DO release_lock({MYSQL_LOCK})"))

"""Revisions of a schema: the one that a database has, and migrating to the newest."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from oslo_db import exception as db_exc
from oslo_log import log

from placement_foundation.database import trouble
from placement_foundation.database.storage import Database

LOG = log.getLogger(__name__)

# Any number will do that this database does not use for anything else.
POSTGRESQL_LOCK = 8778_1976
# Locks of MySQL belong to the server, so the name includes the database.
MYSQL_LOCK = "concat('placement-migration-', sha1(database()))"
# How long to wait for another process's migration, in seconds.
PATIENCE = 3600

# Alembic keeps its state in globals of its modules.
_alembic_lock = threading.Lock()


class History:
    """The revisions of a schema, oldest first.

    :param scripts: where alembic finds them: package and directory, ``a.b:alembic``
    :param head: the newest revision
    :param version_table: where a database records the revision that it has
    :param beside: the history of other tables, which are migrated together with these
    """

    def __init__(
        self,
        scripts: str,
        head: str,
        version_table: str = "alembic_version",
        beside: "History | None" = None,
    ) -> None:
        self._beside = beside
        self.head = head
        self.scripts = scripts
        self.version_table = version_table

    def version(self, database: Database) -> str | None:
        """Return the revision recorded in a database, None if there is no record."""
        with database.engine.connect() as connection:
            return self._recorded(connection)

    def is_newest(self, connection: sa.Connection) -> bool:
        """Return whether the newest revision is the one recorded.

        :raises Exception: there is no record
        """
        recorded = sa.table(self.version_table, sa.column("version_num"))
        return connection.scalar(sa.select(recorded.c.version_num)) == self.head

    def upgrade(self, database: Database, revision: str | None = None) -> None:
        """Migrate the schema to a revision, the newest if none is given.

        A database that already has it is not touched. Processes and threads that start
        together take turns.

        :raises alembic.util.CommandError: the database has an unknown revision
        :raises RuntimeError: the data must be repaired first, by an online migration
        """
        wanted = revision or self.head
        if not self._is_at(database, wanted):
            with database.unhurried() as engine, _exclusively(engine) as connection:
                # The process that held the lock has most likely done the work.
                if self._recorded(connection) != wanted:
                    command.upgrade(self._alembic(connection), wanted)
        if self._beside and wanted == self.head:
            self._beside.upgrade(database)

    def stamp(self, database: Database, revision: str) -> None:
        """Record a revision without migrating.

        :param revision: an id or the beginning of one, ``head``, or ``base`` for no
            record at all
        :raises alembic.util.CommandError: there is no such revision
        """
        with database.unhurried() as engine, _exclusively(engine) as connection:
            # What was recorded before does not matter, even if it is unknown.
            command.stamp(self._alembic(connection), revision, purge=True)

    def _is_at(self, database: Database, revision: str) -> bool:
        try:
            return self.version(database) == revision
        except Exception as exc:
            # Another process is migrating and has the record locked.
            if trouble.is_busy(exc):
                return False
            raise

    def _recorded(self, connection: sa.Connection) -> str | None:
        options = {"version_table": self.version_table}
        context = MigrationContext.configure(connection, opts=options)
        return context.get_current_revision()

    def _alembic(self, connection: sa.Connection) -> Config:
        config = Config()
        config.set_main_option("script_location", self.scripts)
        config.attributes["connection"] = connection
        config.attributes["version_table"] = self.version_table
        return config


def run(environment: Any) -> None:
    """Run migrations on the connection that was passed, for an ``env.py``.

    :param environment: the module ``alembic.context``
    """
    attributes = environment.config.attributes
    environment.configure(
        connection=attributes["connection"],
        version_table=attributes["version_table"],
    )
    with environment.begin_transaction():
        environment.run_migrations()


@contextlib.contextmanager
def _exclusively(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection in a transaction, with no other migration at the same time."""
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
        usual = connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one()
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {PATIENCE * 1000}")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {usual}")
        yield connection


@contextlib.contextmanager
def _wait_on_postgresql(engine: sa.Engine) -> Iterator[sa.Connection]:
    with engine.begin() as connection:
        # The end of the transaction releases it.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(POSTGRESQL_LOCK)))
        yield connection


@contextlib.contextmanager
def _wait_on_mysql(engine: sa.Engine) -> Iterator[sa.Connection]:
    # The lock has its own connection: it must outlive the commit.
    with engine.connect() as guard:
        try:
            got = guard.scalar(sa.text(f"SELECT get_lock({MYSQL_LOCK}, {PATIENCE})"))
        except (sa.exc.DBAPIError, db_exc.DBError) as exc:
            # A Galera cluster may not allow named locks.
            LOG.warning("cannot lock the migration, run one at a time: %s", exc)
            got = True
        if not got:
            raise TimeoutError("timed out waiting for another migration")
        try:
            with engine.begin() as connection:
                yield connection
        finally:
            guard.execute(sa.text(f"DO release_lock({MYSQL_LOCK})"))

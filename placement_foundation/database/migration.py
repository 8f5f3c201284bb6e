"""Revisions of a schema: the one that a database has, and migrating to the newest."""

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_log import log

from placement_foundation.database import trouble
from placement_foundation.database.storage import Database
from placement_foundation.observing import progress
from placement_foundation.observing.progress import Progress

if TYPE_CHECKING:
    from alembic.config import Config

LOG = log.getLogger(__name__)

# Any number will do that this database does not use for anything else.
POSTGRESQL_LOCK = 8778_1976
# Locks of MySQL belong to the server, so the name includes the database.
MYSQL_LOCK = "concat('placement-migration-', sha1(database()))"
# How long to wait for another process's migration, in seconds.
PATIENCE = 3600


class MigrationError(Exception):
    """A database cannot be migrated as it is. The message is for the operator."""


# Errors that may keep optional tables from being migrated.
BESIDE_THE_POINT = (
    sa.exc.SQLAlchemyError,
    db_exc.DBError,
    MigrationError,
    TimeoutError,
)

# Alembic keeps its state in globals of its modules.
_alembic_lock = threading.Lock()


# Returns the rows that a table needs and lacks.
ListMissing: TypeAlias = Callable[[sa.Connection], Sequence[Mapping[str, Any]]]


@dataclasses.dataclass(frozen=True, slots=True)
class Content:
    """The tables of the newest revision of a history, and the rows in them.

    Lost parts can be made again from it: a table that an operator dropped, or rows that
    are missing because a database commits each statement of a migration by itself.
    """

    tables: sa.MetaData
    rows: Mapping[sa.Table, ListMissing]

    def is_complete(self, connection: sa.Connection) -> bool:
        """Return whether a database has all of these tables and rows."""
        names = set(sa.inspect(connection).get_table_names())
        return names.issuperset(self.tables.tables) and not any(
            list_missing(connection) for list_missing in self.rows.values()
        )

    def complete(self, connection: sa.Connection) -> None:
        """Create the tables and rows that a database lacks."""
        self.tables.create_all(connection)
        for table, list_missing in self.rows.items():
            missing = list_missing(connection)
            if missing:
                connection.execute(sa.insert(table), missing)


NOTHING = Content(sa.MetaData(), {})


class History:
    """The revisions of a schema, oldest first.

    :param scripts: where alembic finds them: package and directory, ``a.b:alembic``
    :param head: the newest revision
    :param version_table: where a database records the revision that it has
    :param beside: the history of other tables, which are migrated together with these
    :param content: tables and rows of the newest revision, if it can be made again
    """

    def __init__(
        self,
        scripts: str,
        head: str,
        version_table: str = "alembic_version",
        beside: "History | None" = None,
        content: Content = NOTHING,
    ) -> None:
        self._content = content
        self._beside = beside
        self.head = head
        self.scripts = scripts
        self.version_table = version_table

    def version(self, database: Database) -> str | None:
        """Return the revision recorded in a database, None if there is no record.

        :raises MigrationError: it has more than one
        """
        with database.engine.connect() as connection:
            return self._recorded(connection)

    def check_newest(self, connection: sa.Connection) -> None:
        """Check that the newest revision is the one recorded.

        :raises MigrationError: it is another one, or there are several
        :raises Exception: there is no record
        """
        recorded = self._read(connection)
        if recorded != [self.head]:
            raise MigrationError(
                f"the database has revision {', '.join(recorded) or 'none'}, and this "
                f"release needs {self.head}"
            )

    def upgrade(
        self,
        database: Database,
        revision: str | None = None,
        report: Progress = progress.SILENT,
    ) -> None:
        """Migrate the schema to a revision, the newest if none is given.

        A database that has all of this revision is not touched.
        Processes and threads that start together take turns. A user who has no right
        to create the tables of the history beside this one gets a warning: with these
        tables alone, a database is as another service has left it.

        :param report: gets the progress, in revisions
        :raises MigrationError: the database has an unknown revision, or its data must
            be repaired first, by an online migration
        """
        target = revision or self.head
        self._upgrade_alone(database, target, report)
        if self._beside and target == self.head:
            try:
                self._beside.upgrade(database, report=report)
            except (sa.exc.SQLAlchemyError, db_exc.DBError) as exc:
                if not trouble.is_denied(exc):
                    raise
                LOG.warning(
                    "the schema is the newest, but the user may not create all tables "
                    "that only this service has; it works without what they are for: "
                    "%s",
                    trouble.describe(exc),
                )

    def _upgrade_alone(self, database: Database, wanted: str, report: Progress) -> None:
        """Migrate to a revision, without the history beside this one."""
        if not self._is_at(database, wanted):
            report.begin("waiting for the turn to migrate")
            with database.unhurried() as engine, _exclusively(engine) as connection:
                # The process that held the lock has most likely done the work.
                if self._recorded(connection) != wanted:
                    report.begin("migrating, revision by revision")
                    with self._alembic(connection, report) as (command, config):
                        command.upgrade(config, wanted)
                if wanted == self.head:
                    self._content.complete(connection)

    def upgrade_to_serve(self, database: Database) -> None:
        """Migrate the schema to the newest revision for a service that is starting.

        The service can do without the tables of the history beside this one, so it
        starts if these cannot be migrated: its user may not be allowed to.

        :raises MigrationError: as ``upgrade`` does
        """
        self._upgrade_alone(database, self.head, progress.SILENT)
        try:
            if self._beside:
                self._beside.upgrade(database)
        except BESIDE_THE_POINT as exc:
            LOG.warning(
                "the service starts without some of its own tables, and without what "
                "they are for: %s",
                trouble.describe(exc),
            )

    def stamp(self, database: Database, revision: str) -> None:
        """Record a revision without migrating.

        :param revision: an id or the beginning of one, ``head``, or ``base`` for no
            record at all
        :raises MigrationError: there is no such revision
        """
        if not revision:
            # Alembic asserts that there is one.
            raise MigrationError("Can't locate revision identified by ''")
        with (
            database.unhurried() as engine,
            _exclusively(engine) as connection,
            self._alembic(connection) as (command, config),
        ):
            # The earlier record does not matter, even if it is unknown.
            command.stamp(config, revision, purge=True)

    def _is_at(self, database: Database, revision: str) -> bool:
        try:
            with database.engine.connect() as connection:
                if self._recorded(connection) != revision:
                    return False
                return revision != self.head or self._content.is_complete(connection)
        except Exception as exc:
            # Another process is migrating and has the record locked.
            if trouble.is_busy(exc):
                return False
            raise

    def _recorded(self, connection: sa.Connection) -> str | None:
        if not sa.inspect(connection).has_table(self.version_table):
            return None
        recorded = self._read(connection)
        if len(recorded) > 1:
            raise MigrationError(f"{self.version_table} has more than one revision")
        return recorded[0] if recorded else None

    def _read(self, connection: sa.Connection) -> Sequence[str]:
        recorded = sa.table(self.version_table, sa.column("version_num"))
        return connection.scalars(sa.select(recorded.c.version_num)).all()

    @contextlib.contextmanager
    def _alembic(
        self, connection: sa.Connection, report: Progress = progress.SILENT
    ) -> "Iterator[tuple[ModuleType, Config]]":
        """Yield alembic's commands, and their configuration.

        :raises MigrationError: alembic refuses
        """
        # Loaded late, so that services and commands without migrations need not wait.
        from alembic import command, util
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", self.scripts)
        config.attributes["connection"] = connection
        config.attributes["report"] = report
        config.attributes["version_table"] = self.version_table
        try:
            yield command, config
        except util.CommandError as exc:
            raise MigrationError(str(exc)) from exc


def run(environment: Any) -> None:
    """Run migrations on the connection that was passed, for an ``env.py``.

    :param environment: the module ``alembic.context``
    """
    attributes = environment.config.attributes
    report: Progress = attributes["report"]
    environment.configure(
        connection=attributes["connection"],
        version_table=attributes["version_table"],
        on_version_apply=lambda **step: report.advance(),
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

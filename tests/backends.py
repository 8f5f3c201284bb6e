"""Databases to test on: SQLite, PostgreSQL or MariaDB, as the environment says.

``PLACEMENT_TEST_DATABASE`` is ``sqlite`` (the default), ``postgresql`` or ``mysql``.
The servers are those at 127.0.0.1, unless ``PLACEMENT_TEST_POSTGRESQL_URL`` or
``PLACEMENT_TEST_MYSQL_URL`` names another one.
"""

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from placement.db import migration, models
from placement.db.own import content
from placement.objects import copying, standard_name
from placement.objects.ledger import Ledger
from placement.objects.soundness import checking
from placement.objects.soundness.rule import RULES
from placement_foundation import option
from placement_foundation.database import sequence, storage
from placement_foundation.database.storage import Database
from placement_foundation.database.trouble import LostRaceError

KIND = os.environ.get("PLACEMENT_TEST_DATABASE", "sqlite")
SERVERS = {
    "postgresql": os.environ.get(
        "PLACEMENT_TEST_POSTGRESQL_URL",
        "postgresql+psycopg://postgres@127.0.0.1/postgres",
    ),
    "mysql": os.environ.get(
        "PLACEMENT_TEST_MYSQL_URL", "mysql+pymysql://root@127.0.0.1/mysql"
    ),
}


def connect(url: str) -> Database:
    """Return the database with a URL, which must exist."""
    # Tests do not wait for a missing server, nor for a disk: processes are killed, the
    # machine is not.
    return storage.connect(
        option.DatabaseSettings(
            url, max_retries=1, retry_interval=1, sqlite_synchronous=False
        )
    )


@contextmanager
def empty_database(directory: Path, kind: str = KIND) -> Iterator[str]:
    """Give the URL of a new database without any table, and remove it afterwards."""
    name = f"placement_test_{uuid.uuid4().hex}"
    if kind == "sqlite":
        yield f"sqlite:///{directory / name}.db"
        return
    server = sa.create_engine(SERVERS[kind], isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
        if kind == "postgresql":
            connection.execute(
                sa.text(f"ALTER DATABASE {name} SET synchronous_commit = off")
            )
    url = sa.make_url(SERVERS[kind]).set(database=name)
    try:
        yield url.render_as_string(hide_password=False)
    finally:
        force = " WITH (FORCE)" if kind == "postgresql" else ""
        with server.connect() as connection:
            connection.execute(sa.text(f"DROP DATABASE {name}{force}"))
        server.dispose()


def make_placement(database: Database) -> None:
    """Create the tables, and the standard traits and resource classes."""
    migration.SCHEMA.upgrade(database)
    standard_name.synchronise(Ledger(database))


@contextmanager
def embedded() -> Iterator[Database]:
    """Give another database, on SQLite."""
    with tempfile.TemporaryDirectory() as directory:
        database = connect(f"sqlite:///{directory}/embedded.db")
        make_placement(database)
        yield database
        database.engine.dispose()


def copy(source: Database, target: Database) -> int:
    """Copy a database into an empty one, and return how many rows."""
    return source.look(
        lambda old: Ledger(target).write(lambda new: copying.copy(old, new), attempts=1)
    )


def empty_placement(connection: sa.Connection) -> None:
    """Remove everything that tests have left, and put back what they have removed."""
    content.CONTENT.complete(connection)
    if missing := standard_name.list_missing_traits(connection):
        traits = [{"name": name} for name in missing]
        connection.execute(sa.insert(models.Trait), traits)
    providers = models.ResourceProvider
    connection.execute(sa.delete(models.LEASES))
    connection.execute(
        sa.update(providers).values(root_provider_id=None, parent_provider_id=None)
    )
    for table in reversed(models.Base.metadata.sorted_tables):
        if table.name not in ("traits", "resource_classes"):
            connection.execute(sa.delete(table))
    connection.execute(sa.delete(models.DECLARATIONS))
    connection.execute(sa.delete(models.NOTES))
    connection.execute(
        sa.delete(models.Trait).where(models.Trait.name.startswith("CUSTOM"))
    )
    connection.execute(
        sa.delete(models.ResourceClass).where(models.ResourceClass.id >= 10000)
    )
    for journal in (
        models.JOURNAL_INBOX,
        models.JOURNAL_ENTRIES,
        models.JOURNAL_MENTIONS,
    ):
        connection.execute(sa.delete(journal))
    state = models.JOURNAL_STATE.c
    emptied = {"expired": state.position, "expired_token": state.token}
    connection.execute(sa.update(models.JOURNAL_STATE).values(emptied))
    # Otherwise a row that a test writes with its id, and which no sequence notices,
    # is in the way of a later one only if no test before has drawn as many ids.
    sequence.count_on(connection, models.Base.metadata.sorted_tables)


# From how many bytes on a table and its indexes are shrunk. Few tests write that much.
LARGE = 1_000_000
_LARGE_TABLES = sa.text(
    "SELECT relname FROM pg_class WHERE relkind = 'r'"
    " AND relnamespace = 'public'::regnamespace AND pg_total_relation_size(oid) > :size"
)


def _shrink(engine: sa.Engine) -> None:
    """Give back what removed rows take: each later statement would look at them."""
    large = _list_large_tables(engine)
    if large:
        _run_alone(engine, f"VACUUM (FULL, ANALYZE) {', '.join(large)}")


def _analyze(engine: sa.Engine) -> None:
    """Have PostgreSQL see how many rows there are, if there are many.

    It looks at no table by itself. Of one that it saw when its rows were removed, but
    not their pages, it would go on to expect no row: the pages are given back.
    """
    if _list_large_tables(engine):
        _run_alone(engine, "VACUUM (ANALYZE)")


def _leave_unseen(engine: sa.Engine) -> None:
    """Keep PostgreSQL from looking at a table when a test has just emptied it.

    It would expect no row there until it looks again, a minute later, and read the
    whole of it for each row of another one.
    """
    if engine.dialect.name == "postgresql":
        with engine.begin() as connection:
            for name in sa.inspect(connection).get_table_names():
                statement = f"ALTER TABLE {name} SET (autovacuum_enabled = off)"
                connection.execute(sa.text(statement))


def _list_large_tables(engine: sa.Engine) -> Sequence[str]:
    if engine.dialect.name != "postgresql":
        return []
    with engine.connect() as connection:
        return connection.execute(_LARGE_TABLES, {"size": LARGE}).scalars().all()


def _run_alone(engine: sa.Engine, statement: str) -> None:
    """Execute what is not for transactions, which each connection begins."""
    alone = sa.create_engine(engine.url, isolation_level="AUTOCOMMIT")
    with alone.connect() as connection:
        connection.execute(sa.text(statement))
    alone.dispose()


def rows_of(connection: sa.Connection) -> dict[str, list[sa.Row[Any]]]:
    """Return everything that is stored, by table."""
    tables = [*models.Base.metadata.sorted_tables, *models.OWN.sorted_tables]
    return {
        table.name: list(connection.execute(sa.select(table).order_by(*table.c)))
        for table in tables
    }


def check_is_sound(connection: sa.Connection) -> None:
    """Check that nothing is damaged. What the API allows is none of that."""
    rules = [rule for rule in RULES if rule.damage]
    damage = {
        found.rule.name: found.rows for found in checking.check(connection, rules=rules)
    }
    assert not damage, f"the test leaves damage: {damage}"


def check_is_left_sound(url: str) -> None:
    """Check that nothing is damaged in the database that a service has left."""
    database = connect(url)
    try:
        database.read(check_is_sound)
    finally:
        database.engine.dispose()


def fail_next_commit(database: Database) -> None:
    """Make the next commit lose a race, as on a cluster whose nodes disagree."""

    def lose(connection: sa.Connection) -> None:
        connection.connection.rollback()
        raise LostRaceError

    sa.event.listen(database.engine, "commit", lose, once=True)


class Template:
    """A database to start tests from, for Placement or for another service.

    :param make: creates the initial content
    :param empty: removes everything else
    :param check: fails if something is damaged
    """

    def __init__(
        self,
        url: str,
        make: Callable[[Database], None] = make_placement,
        empty: Callable[[sa.Connection], None] = empty_placement,
        check: Callable[[sa.Connection], None] = check_is_sound,
    ) -> None:
        self._url = url
        self._empty = empty
        self._check = check
        self._database = connect(url)
        make(self._database)
        _leave_unseen(self._database.engine)
        if KIND == "sqlite":
            # Copied from here on: nothing may stay behind in its log.
            with self._database.engine.connect() as connection:
                connection.execute(sa.text("PRAGMA wal_checkpoint(TRUNCATE)"))
            sa.event.listen(self._database.engine, "do_connect", self._open)

    def _open(
        self, dialect: sa.Dialect, record: object, arguments: list[str], options: object
    ) -> None:
        """Have SQLite open the file that the database has now."""
        arguments[0] = str(self._database.engine.url.database)

    def dispose(self) -> None:
        """Close all connections."""
        self._database.engine.dispose()

    @contextmanager
    def fresh(self, directory: Path, *, damaged: bool = False) -> Iterator[Database]:
        """Give a database with its initial content, and check what becomes of it.

        It is the same engine for all tests, which has compiled its statements. For
        SQLite, it is a new file; for a server, the database of this process without
        anything that earlier tests have left.

        :param damaged: it is not checked: it is meant to be damaged
        """
        database, engine = self._database, self._database.engine
        if KIND == "sqlite":
            engine.dispose()
            path = str(directory / f"{uuid.uuid4().hex}.db")
            shutil.copyfile(str(sa.make_url(self._url).database), path)
            engine.url = sa.make_url(f"sqlite:///{path}")
        else:
            database.write(self._empty)
            _shrink(engine)
        yield database
        if not damaged:
            _analyze(engine)
            with engine.connect() as connection:
                self._check(connection)

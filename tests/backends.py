"""Databases to test on: SQLite, PostgreSQL or MariaDB, as the environment says.

``PLACEMENT_TEST_DATABASE`` is ``sqlite`` (the default), ``postgresql`` or ``mysql``.
The servers are those at 127.0.0.1, unless ``PLACEMENT_TEST_POSTGRESQL_URL`` or
``PLACEMENT_TEST_MYSQL_URL`` names another one.
"""

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from placement.db import migration, models
from placement.objects import standard_name
from placement.objects.soundness import checking
from placement_foundation import option
from placement_foundation.database import storage
from placement_foundation.database.storage import Database

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
    # Tests do not wait for a missing server.
    return storage.connect(
        option.DatabaseSettings(url, max_retries=1, retry_interval=1)
    )


@contextmanager
def empty_database(directory: Path) -> Iterator[str]:
    """Give the URL of a new database without any table, and remove it afterwards."""
    name = f"placement_test_{uuid.uuid4().hex}"
    if KIND == "sqlite":
        yield f"sqlite:///{directory / name}.db"
        return
    server = sa.create_engine(SERVERS[KIND], isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    url = sa.make_url(SERVERS[KIND]).set(database=name)
    try:
        yield url.render_as_string(hide_password=False)
    finally:
        force = " WITH (FORCE)" if KIND == "postgresql" else ""
        with server.connect() as connection:
            connection.execute(sa.text(f"DROP DATABASE {name}{force}"))
        server.dispose()


def make_placement(database: Database) -> None:
    """Create the tables, and the standard traits and resource classes."""
    migration.SCHEMA.upgrade(database)
    standard_name.synchronise(database)


def empty_placement(connection: sa.Connection) -> None:
    """Remove everything that tests have left."""
    providers = models.ResourceProvider
    connection.execute(sa.delete(models.LEASES))
    connection.execute(
        sa.update(providers).values(root_provider_id=None, parent_provider_id=None)
    )
    for table in reversed(models.Base.metadata.sorted_tables):
        if table.name not in ("traits", "resource_classes"):
            connection.execute(sa.delete(table))
    connection.execute(sa.delete(models.DECLARATIONS))
    connection.execute(
        sa.delete(models.Trait).where(models.Trait.name.startswith("CUSTOM"))
    )
    connection.execute(
        sa.delete(models.ResourceClass).where(models.ResourceClass.id >= 10000)
    )
    for journal in (
        models.JOURNAL_INBOX,
        models.JOURNAL_ENTRIES,
        models.JOURNAL_WORDS,
    ):
        connection.execute(sa.delete(journal))
    state = models.JOURNAL_STATE.c
    emptied = {"expired": state.position, "expired_token": state.token}
    connection.execute(sa.update(models.JOURNAL_STATE).values(emptied))


def check_is_sound(connection: sa.Connection) -> None:
    """Check that nothing is damaged. What the API allows is none of that."""
    damage = {
        found.rule.name: found.rows
        for found in checking.check(connection)
        if found.rule.damage
    }
    assert not damage, f"the test leaves damage: {damage}"


class Template:
    """A database to start tests from, for Placement or for another service.

    :param make: creates the initial content
    :param empty: removes everything else
    """

    def __init__(
        self,
        url: str,
        make: Callable[[Database], None] = make_placement,
        empty: Callable[[sa.Connection], None] = empty_placement,
    ) -> None:
        self._url = url
        self._empty = empty
        self._database = connect(url)
        make(self._database)
        if KIND == "sqlite":
            # Copied from here on: nothing may stay behind in its log.
            with self._database.engine.connect() as connection:
                connection.execute(sa.text("PRAGMA wal_checkpoint(TRUNCATE)"))
            self._database.engine.dispose()

    def dispose(self) -> None:
        """Close all connections."""
        self._database.engine.dispose()

    @contextmanager
    def fresh(self, directory: Path) -> Iterator[Database]:
        """Give a database with its initial content.

        For SQLite it is a new file; for a server, the database of this process without
        anything that earlier tests have left.
        """
        if KIND == "sqlite":
            path = directory / f"{uuid.uuid4().hex}.db"
            shutil.copyfile(str(sa.make_url(self._url).database), path)
            database = connect(f"sqlite:///{path}")
            yield database
            database.engine.dispose()
        else:
            # What applications of earlier tests have noted there.
            self._database.openings.clear()
            self._database.write(self._empty)
            yield self._database

"""The migrations create the tables that the models describe."""

from pathlib import Path

import sqlalchemy as sa
from alembic import autogenerate
from alembic.runtime.migration import MigrationContext

from placement_foundation.database.storage import Database
from placement_reservations.cmd import reservations
from placement_reservations.db import models
from placement_reservations.db.migration import SCHEMA
from tests import backends
from tests.client import new_uuid


def test_the_migrations_create_the_tables_of_the_models(tmp_path: Path) -> None:
    with backends.empty_database(tmp_path) as url:
        database = backends.connect(url)
        assert SCHEMA.version(database) is None
        SCHEMA.upgrade(database)
        assert SCHEMA.version(database) == SCHEMA.head
        with database.engine.connect() as connection:
            context = MigrationContext.configure(
                connection, opts={"compare_type": True}
            )
            changes = autogenerate.compare_metadata(context, models.Base.metadata)
        database.engine.dispose()
        assert changes == []


def test_names_are_sorted_byte_by_byte(books: Database) -> None:
    names = ["Zebra", "a-b", "aB", "ab", "\u00e4"]

    def work(connection: sa.Connection) -> list[str]:
        rows = [{"name": name, "private": False} for name in reversed(names)]
        connection.execute(sa.insert(models.HostProperty), rows)
        query = sa.select(models.HostProperty.name).order_by(models.HostProperty.name)
        return list(connection.scalars(query))

    assert books.write(work) == names


def test_the_command_creates_the_tables(tmp_path: Path) -> None:
    with backends.empty_database(tmp_path) as url:
        path = tmp_path / f"{new_uuid()}.conf"
        path.write_text(f"[database]\nconnection = {url}\n")
        asked = ["db", "sync", "--config-file", str(path)]
        assert reservations.main(asked) == 0
        assert reservations.main(asked) == 0
        database = backends.connect(url)
        assert SCHEMA.version(database) == SCHEMA.head
        database.engine.dispose()

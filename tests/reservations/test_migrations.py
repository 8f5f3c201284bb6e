"""The migrations create the tables that the models describe."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import autogenerate
from alembic.runtime.migration import MigrationContext
from oslo_db import exception as db_exc

from placement_foundation.database.storage import Database
from placement_reservations.db import models
from placement_reservations.db.migration import SCHEMA
from tests import backends


def test_the_migrations_create_the_tables_of_the_models(tmp_path: Path) -> None:
    with backends.empty_database(tmp_path) as url:
        database = backends.connect(url)
        assert SCHEMA.version(database) is None
        SCHEMA.upgrade(database)
        check_schema(database)
        database.engine.dispose()


def check_schema(database: Database) -> None:
    """Check that a database has what the models describe."""
    assert SCHEMA.version(database) == SCHEMA.head
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert autogenerate.compare_metadata(context, models.Base.metadata) == []


@contextmanager
def killed_after(number: int) -> Iterator[None]:
    """End what changes a schema after some statements."""
    left = iter(range(number))

    def end(connection: Any, cursor: Any, statement: str, *unused: Any) -> None:
        is_change = statement.lstrip().startswith(("CREATE", "ALTER", "UPDATE"))
        if is_change and next(left, None) is None:
            raise sa.exc.InterfaceError(statement, None, OSError("killed"))

    # Migrations have an engine of their own.
    sa.event.listen(sa.Engine, "before_cursor_execute", end)
    try:
        yield
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", end)


def test_a_migration_that_ended_anywhere_can_be_repeated(tmp_path: Path) -> None:
    # Servers take more than a second for each.
    for number in itertools.count(step=1 if backends.KIND == "sqlite" else 4):
        with backends.empty_database(tmp_path) as url:
            database = backends.connect(url)
            with killed_after(number):
                try:
                    SCHEMA.upgrade(database)
                    break
                except (db_exc.DBError, sa.exc.InterfaceError):
                    pass
                finally:
                    database.engine.dispose()
            SCHEMA.upgrade(database)
            check_schema(database)
            database.engine.dispose()
    assert number > len(models.Base.metadata.tables)


def test_names_are_sorted_byte_by_byte(books: Database) -> None:
    names = ["Zebra", "a-b", "aB", "ab", "\u00e4"]

    def work(connection: sa.Connection) -> list[str]:
        rows = [{"name": name, "private": False} for name in reversed(names)]
        connection.execute(sa.insert(models.HostProperty), rows)
        query = sa.select(models.HostProperty.name).order_by(models.HostProperty.name)
        return list(connection.scalars(query))

    assert books.write(work) == names

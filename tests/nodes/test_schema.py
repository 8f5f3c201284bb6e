"""The tables of the node service."""

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import autogenerate
from alembic.migration import MigrationContext

from placement_foundation.database.storage import Database
from placement_nodes.db import migration, models
from tests import backends


def test_migrations_make_what_the_models_say(nodes_database: Database) -> None:
    with nodes_database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        found = autogenerate.compare_metadata(context, models.Base.metadata)
    assert found == []
    assert migration.SCHEMA.version(nodes_database) == migration.SCHEMA.head


def lose_record(connection: sa.Connection) -> None:
    connection.exec_driver_sql("DELETE FROM alembic_version")


def lose_index(connection: sa.Connection) -> None:
    on = " ON node_traits" if backends.KIND == "mysql" else ""
    connection.exec_driver_sql(f"DROP INDEX node_traits_trait_idx{on}")


def lose_traits(connection: sa.Connection) -> None:
    connection.exec_driver_sql("DROP TABLE node_traits")


@pytest.mark.parametrize(
    "losses", [[lose_record], [lose_index, lose_record], [lose_traits, lose_record]]
)
def test_an_interrupted_migration_can_be_repeated(
    tmp_path: Path, losses: list[Callable[[sa.Connection], None]]
) -> None:
    with backends.empty_database(tmp_path) as url:
        database = backends.connect(url)
        migration.SCHEMA.upgrade(database)
        # MariaDB commits each statement, so all of these states can be met there.
        with database.engine.begin() as connection:
            for lose in losses:
                lose(connection)
        migration.SCHEMA.upgrade(database)
        test_migrations_make_what_the_models_say(database)
        database.engine.dispose()

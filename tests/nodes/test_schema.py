"""The tables of the node service."""

from pathlib import Path

import sqlalchemy as sa
from alembic import autogenerate
from alembic.migration import MigrationContext

from placement_foundation.database.storage import Database
from placement_nodes.db import migration, models
from placement_nodes.objects import node
from tests import backends


def test_migrations_make_what_the_models_say(nodes_database: Database) -> None:
    with nodes_database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        found = autogenerate.compare_metadata(context, models.Base.metadata)
    assert found == []
    assert migration.SCHEMA.version(nodes_database) == migration.SCHEMA.head


def test_the_tables_of_a_new_database_are_made_once(tmp_path: Path) -> None:
    with backends.empty_database(tmp_path) as url:
        database = backends.connect(url)
        for _ in range(2):
            migration.SCHEMA.upgrade(database)
        database.engine.dispose()


def test_a_trait_is_known_by_node_and_name(nodes_database: Database) -> None:
    inspector = sa.inspect(nodes_database.engine)
    key = inspector.get_pk_constraint("node_traits")
    assert key["constrained_columns"] == ["node_id", "trait"]
    indexes = inspector.get_indexes("node_traits")
    assert ["trait"] in [index["column_names"] for index in indexes]
    [foreign] = inspector.get_foreign_keys("node_traits")
    assert foreign["referred_table"] == "nodes"
    assert foreign["options"] == {"ondelete": "CASCADE"}


def test_a_value_of_a_node_is_a_column_or_its_traits() -> None:
    columns = {column.name for column in models.Node.__table__.columns}
    assert set(node.Node.__slots__) == {*columns, "traits"}

"""Migrations: who may run them, in which order, and what they refuse."""

import functools
import re
import threading
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from placement.db import migration, models
from placement_foundation import option
from placement_foundation.database import storage
from placement_foundation.database.migration import MigrationError
from placement_foundation.database.storage import Database
from tests import backends, programs
from tests.db import legacy
from tests.statements import statements
from tests.threads import at_once


def schema(database: Database) -> Any:
    """Return all tables with all they consist of, comparable."""
    metadata = sa.MetaData()
    with database.engine.connect() as connection:
        metadata.reflect(connection)
        return {
            table.name: (
                [(column.name, str(column.type)) for column in table.columns],
                sorted(str(index.name) for index in table.indexes),
                connection.execute(sa.select(table)).all(),
            )
            for table in metadata.sorted_tables
        }


def is_at_head(database: Database) -> bool:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"include_name": is_shared}
        )
        return not compare_metadata(context, models.Base.metadata)


def is_shared(name: str | None, kind: str, parents: object) -> bool:
    """Return whether an object also belongs to the schema of OpenStack Placement."""
    own = {*models.OWN.tables, migration.OWN.version_table}
    return kind != "table" or name not in own


def test_the_revisions_are_these_in_this_order() -> None:
    config = Config()
    config.set_main_option("script_location", migration.SCHEMA.scripts)
    script = ScriptDirectory.from_config(config)
    walked = [revision.revision for revision in script.walk_revisions()]
    assert walked[::-1] == legacy.REVISIONS
    assert script.get_heads() == [migration.SCHEMA.head]


def test_a_database_without_tables_has_no_version(empty: Database) -> None:
    assert migration.SCHEMA.version(empty) is None
    assert sa.inspect(empty.engine).get_table_names() == []


@pytest.mark.parametrize("revision", legacy.REVISIONS)
def test_every_revision_can_be_reached_and_left(empty: Database, revision: str) -> None:
    migration.SCHEMA.upgrade(empty, revision)
    assert migration.SCHEMA.version(empty) == revision
    migration.SCHEMA.upgrade(empty)
    assert migration.SCHEMA.version(empty) == migration.SCHEMA.head
    assert is_at_head(empty)


def test_at_head_nothing_but_the_version_is_read(empty: Database) -> None:
    migration.SCHEMA.upgrade(empty)
    with statements(empty) as seen:
        migration.SCHEMA.upgrade(empty)
    changing = {"CREATE", "ALTER", "DROP", "INSERT", "UPDATE", "DELETE", "BEGIN"}
    assert seen
    assert not [line for line in seen if line.split()[0].upper() in changing]
    assert not [line for line in seen if "lock" in line.lower()]


def test_the_lock_on_the_migration_is_taken_once_and_let_go(
    empty: Database,
) -> None:
    migration.SCHEMA.upgrade(empty, legacy.TABLES)
    # Would wait for itself if any lock were left behind.
    other = backends.connect(empty.engine.url.render_as_string(hide_password=False))
    migration.SCHEMA.upgrade(other)
    other.engine.dispose()
    assert migration.SCHEMA.version(empty) == migration.SCHEMA.head


def test_an_unknown_revision_stops_the_migration(empty: Database) -> None:
    migration.SCHEMA.upgrade(empty, legacy.CONSUMERS)
    legacy.fill(empty)
    with empty.engine.begin() as connection:
        legacy.execute(connection, "UPDATE alembic_version SET version_num = 'feed'")
    before = schema(empty)
    with pytest.raises(MigrationError, match="revision identified by 'feed'"):
        migration.SCHEMA.upgrade(empty)
    assert schema(empty) == before


def test_more_than_one_revision_is_no_revision(empty: Database) -> None:
    migration.SCHEMA.upgrade(empty)
    with empty.engine.begin() as connection:
        connection.execute(
            sa.text("INSERT INTO alembic_version (version_num) VALUES ('feed')")
        )
    with (
        empty.engine.connect() as connection,
        pytest.raises(MigrationError, match="and this release needs a082b8bb98d0"),
    ):
        migration.SCHEMA.check_newest(connection)
    for use in (migration.SCHEMA.version, migration.SCHEMA.upgrade):
        with pytest.raises(MigrationError, match="more than one revision"):
            use(empty)


def test_a_provider_without_root_stops_the_migration(empty: Database) -> None:
    migration.SCHEMA.upgrade(empty, legacy.TABLES)
    legacy.fill(empty)
    legacy.add_provider_without_root(empty)
    before = schema(empty)
    with pytest.raises(MigrationError) as refusal:
        migration.SCHEMA.upgrade(empty)
    assert str(refusal.value).startswith(
        "There is at least one resource provider table record which is missing its "
        "root provider id."
    )
    assert "placement-manage db online_data_migrations" in str(refusal.value)
    assert schema(empty) == before
    assert migration.SCHEMA.version(empty) == legacy.TABLES


@pytest.mark.parametrize("revision", [legacy.TABLES, legacy.ROOTS])
def test_an_allocation_without_consumer_stops_the_migration(
    empty: Database, revision: str
) -> None:
    migration.SCHEMA.upgrade(empty, revision)
    legacy.fill(empty)
    legacy.add_allocation_without_consumer(empty)
    before = schema(empty)
    with pytest.raises(MigrationError) as refusal:
        migration.SCHEMA.upgrade(empty)
    assert str(refusal.value).startswith(
        "There is at least one allocation record which is missing a consumer record."
    )
    assert "placement-manage db online_data_migrations" in str(refusal.value)
    assert schema(empty) == before


def test_migrations_do_not_become_scripts() -> None:
    config = Config()
    config.set_main_option("script_location", migration.SCHEMA.scripts)
    config.set_main_option("sqlalchemy.url", "sqlite://")
    with pytest.raises(NotImplementedError, match="run on a database"):
        command.upgrade(config, "head", sql=True)


@pytest.mark.parametrize(
    ("asked", "recorded"),
    [
        ("head", legacy.HEAD),
        ("base", None),
        (legacy.ROOTS, legacy.ROOTS),
        ("b5c39", legacy.CONSUMERS),
    ],
)
def test_stamp_records_a_revision_and_does_nothing_else(
    empty: Database, asked: str, recorded: str | None
) -> None:
    migration.SCHEMA.upgrade(empty, legacy.CONSUMER_TYPES)
    before = schema(empty)
    migration.SCHEMA.stamp(empty, asked)
    assert migration.SCHEMA.version(empty) == recorded
    after = schema(empty)
    del before["alembic_version"], after["alembic_version"]
    assert after == before


def test_stamp_works_on_a_database_that_never_had_a_version(
    empty: Database,
) -> None:
    models.Base.metadata.create_all(empty.engine)
    migration.SCHEMA.stamp(empty, "head")
    assert migration.SCHEMA.version(empty) == migration.SCHEMA.head
    assert is_at_head(empty)


def test_stamp_replaces_an_unknown_revision(empty: Database) -> None:
    migration.SCHEMA.upgrade(empty)
    with empty.engine.begin() as connection:
        legacy.execute(connection, "UPDATE alembic_version SET version_num = 'feed'")
    migration.SCHEMA.stamp(empty, "head")
    assert migration.SCHEMA.version(empty) == migration.SCHEMA.head


@pytest.mark.skipif(backends.KIND == "sqlite", reason="its readers wait for nobody")
def test_a_record_that_another_migration_holds_is_waited_for(empty: Database) -> None:
    migration.SCHEMA.upgrade(empty, legacy.CONSUMERS)
    url = empty.engine.url.render_as_string(hide_password=False)
    hurried = storage.connect(option.DatabaseSettings(url, lock_timeout=1))
    lock = {
        "postgresql": "LOCK TABLE alembic_version IN ACCESS EXCLUSIVE MODE",
        "mysql": "LOCK TABLES alembic_version WRITE",
    }[backends.KIND]
    held, end = threading.Event(), threading.Event()

    def hold() -> None:
        with empty.engine.connect() as connection:
            connection.exec_driver_sql(lock)
            held.set()
            end.wait()
            if backends.KIND == "mysql":
                connection.exec_driver_sql("UNLOCK TABLES")

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    threading.Timer(3, end.set).start()
    migration.SCHEMA.upgrade(hurried)
    holder.join()
    hurried.engine.dispose()
    assert is_at_head(empty)


def test_threads_that_start_together_migrate_once(empty: Database) -> None:
    at_once([functools.partial(migration.SCHEMA.upgrade, empty)] * 4)
    assert is_at_head(empty)


def test_processes_that_start_together_migrate_once(
    empty_url: str, empty: Database, tmp_path: Path
) -> None:
    starting = [
        programs.start(
            "placement.cmd.manage", "db", "sync", home=tmp_path, connection=empty_url
        )
        for _ in range(4)
    ]
    outcomes = [(*process.communicate(), process.returncode) for process in starting]
    # What takes long says so: the work, and waiting for it.
    assert [(status, out) for out, _, status in outcomes] == [(0, "")] * 4
    said = "".join(err for _, err, _ in outcomes).splitlines()
    assert all(re.search(r"migrat.* so far\)", line) for line in said), said
    assert migration.SCHEMA.version(empty) == migration.SCHEMA.head
    assert is_at_head(empty)


@pytest.mark.parametrize(
    "gone",
    [
        ("resource_providers", "resource_providers_name_idx"),
        ("inventories", "inventories_resource_provider_id_idx"),
    ],
)
def test_a_redundant_index_that_is_gone_already_is_not_missed(
    empty: Database, gone: tuple[str, str]
) -> None:
    migration.SCHEMA.upgrade(empty, legacy.CONSUMER_TYPES)
    table, index = gone
    on = f" ON {table}" if backends.KIND == "mysql" else ""
    with empty.engine.begin() as connection:
        connection.exec_driver_sql(f"DROP INDEX {index}{on}")
    migration.SCHEMA.upgrade(empty)
    assert is_at_head(empty)


@pytest.mark.skipif(
    backends.KIND != "mysql", reason="it rolls back what was interrupted"
)
@pytest.mark.parametrize("done", [1, 2, 3, 4])
def test_an_interrupted_migration_to_consumer_types_can_be_repeated(
    empty: Database, done: int
) -> None:
    migration.SCHEMA.upgrade(empty, legacy.CONSUMERS)
    parts = [
        "CREATE TABLE consumer_types (created_at DATETIME, updated_at DATETIME, "
        "id INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(255) NOT NULL, "
        "CONSTRAINT uniq_consumer_types0name UNIQUE (name))",
        "ALTER TABLE consumers ADD COLUMN consumer_type_id INTEGER",
        "CREATE INDEX consumers_consumer_type_id_idx ON consumers (consumer_type_id)",
        "ALTER TABLE consumers ADD CONSTRAINT consumers_consumer_type_id_fkey "
        "FOREIGN KEY (consumer_type_id) REFERENCES consumer_types (id)",
    ]
    with empty.engine.begin() as connection:
        for part in parts[:done]:
            connection.exec_driver_sql(part)
    migration.SCHEMA.upgrade(empty)
    assert is_at_head(empty)


@pytest.mark.skipif(
    backends.KIND != "mysql", reason="it rolls back what was interrupted"
)
def test_an_interrupted_first_migration_can_be_repeated(empty: Database) -> None:
    migration.SCHEMA.upgrade(empty, legacy.TABLES)
    with empty.engine.begin() as connection:
        for statement in (
            "DELETE FROM alembic_version",
            "DROP TABLE allocations",
            "DROP INDEX resource_providers_uuid_idx ON resource_providers",
        ):
            connection.exec_driver_sql(statement)
    migration.SCHEMA.upgrade(empty)
    assert is_at_head(empty)

"""The tables of our own: lost parts are made again, and users may lack rights."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exc

from placement import app, conf
from placement.cmd import manage
from placement.db import migration, models
from placement.db.own import content
from placement_foundation import option
from placement_foundation.database import storage
from placement_foundation.database.migration import MigrationError
from placement_foundation.database.storage import Database
from placement_foundation.serving import assembly
from tests import backends, programs
from tests.client import Client, new_uuid
from tests.db import rights
from tests.settings import make_config

STAMPS = models.FOREST_STAMPS
VERSION = sa.table(migration.OWN.version_table, sa.column("version_num"))


def rows(database: Database) -> dict[int, str]:
    with database.engine.connect() as connection:
        found = connection.execute(sa.select(STAMPS.c.shard, STAMPS.c.changes))
        return {row.shard: row.changes for row in found}


def execute(database: Database, statement: sa.Executable) -> None:
    with database.engine.begin() as connection:
        connection.execute(statement)


def lose_table(database: Database) -> None:
    execute(database, sa.schema.DropTable(STAMPS))


def lose_rows(database: Database) -> None:
    execute(database, sa.delete(STAMPS))


def lose_some_rows(database: Database) -> None:
    execute(database, sa.delete(STAMPS).where(STAMPS.c.shard > 100))


def be_interrupted(database: Database) -> None:
    """Leave what MariaDB does if a migration ends before its first commit."""
    execute(database, sa.delete(STAMPS))
    execute(database, sa.delete(VERSION))


def lose_version(database: Database) -> None:
    execute(database, sa.text(f"DROP TABLE {VERSION.name}"))


LOSSES = [lose_table, lose_rows, lose_some_rows, be_interrupted, lose_version]


def test_the_revisions_make_the_tables_of_the_models(empty: Database) -> None:
    migration.SCHEMA.upgrade(empty)
    found = sa.MetaData()
    found.reflect(empty.engine)
    for name, table in models.OWN.tables.items():
        made = {column.name: column.nullable for column in found.tables[name].columns}
        assert made == {column.name: column.nullable for column in table.columns}
    shared = {*models.Base.metadata.tables, migration.SCHEMA.version_table}
    ours = {*models.OWN.tables, migration.OWN.version_table}
    assert set(found.tables) == shared | ours


@pytest.mark.parametrize("lose", LOSSES, ids=lambda lose: lose.__name__)
def test_sync_makes_again_what_is_lost(
    lose: object, empty: Database, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration.SCHEMA.upgrade(empty)
    before = rows(empty)
    assert len(before) == content.STAMPS
    assert callable(lose)
    lose(empty)
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", empty_url)
    assert manage.main(["db", "sync"]) == 0
    after = rows(empty)
    assert after.keys() == before.keys()
    assert migration.OWN.version(empty) == migration.OWN.head
    if lose is lose_some_rows:
        assert all(after[shard] == before[shard] for shard in range(101))
        # No process takes a new row for the one that it has seen.
        assert not any(after[shard] == before[shard] for shard in range(101, 257))


def test_an_unknown_revision_of_our_own_tables_stops_sync_but_no_start(
    empty: Database, empty_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    migration.SCHEMA.upgrade(empty)
    execute(empty, sa.update(VERSION).values(version_num="feed"))
    with pytest.raises(MigrationError, match="feed"):
        migration.SCHEMA.upgrade(empty)
    with caplog.at_level(logging.WARNING):
        migration.SCHEMA.upgrade_to_serve(empty)
    assert "without some of its own tables" in caplog.text


@pytest.mark.skipif(backends.KIND == "sqlite", reason="it has no users")
class TestAUserWhoMayNotCreateTables:
    @pytest.fixture(autouse=True)
    def _opened(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Close the databases that the service has opened."""
        opened: list[Database] = []
        connect = storage.connect

        def noted(settings: option.DatabaseSettings) -> Database:
            opened.append(connect(settings))
            return opened[-1]

        monkeypatch.setattr(storage, "connect", noted)
        yield
        for database in opened:
            database.engine.dispose()

    @pytest.fixture
    def limited_url(self, empty: Database, empty_url: str) -> Iterator[str]:
        migration.SCHEMA.upgrade(empty)
        for table in (STAMPS.name, VERSION.name):
            execute(empty, sa.text(f"DROP TABLE {table}"))
        with rights.restricted(empty_url) as user:
            if backends.KIND == "postgresql":
                execute(empty, sa.text("REVOKE CREATE ON SCHEMA public FROM PUBLIC"))
            user.grant(*rights.SHARED)
            user.grant_sequences()
            yield user.url

    def test_a_start_that_migrates_succeeds(
        self,
        limited_url: str,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        programs.unconfigure(monkeypatch, tmp_path)
        monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", limited_url)
        monkeypatch.setenv("OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP", "true")
        monkeypatch.setenv("OS_API__AUTH_STRATEGY", "noauth2")
        with caplog.at_level(logging.WARNING):
            client = Client(app.start(conf.read([])))
        assert "without some of its own tables" in caplog.text
        provider = client.make_provider(VCPU=4)
        assert client.boot("resources=VCPU:4")
        assert client.usages(provider) == {"VCPU": 4}

    def test_sync_reports_what_it_may_not_do(
        self,
        limited_url: str,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        # Deployments run it each time, and the schema is the newest already.
        monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", limited_url)
        assert manage.main(["db", "sync"]) == 0
        assert "the user may not create all tables" in caplog.text
        assert "denied" in caplog.text

    def test_the_shared_tables_must_be_migrated_or_nothing_starts(
        self, empty: Database, limited_url: str
    ) -> None:
        shared = sa.table(migration.SCHEMA.version_table, sa.column("version_num"))
        execute(empty, sa.update(shared).values(version_num="422ece571366"))
        # It only takes rights that the user lacks to remove what is there.
        index = "resource_providers_name_idx ON resource_providers (name)"
        execute(empty, sa.text(f"CREATE INDEX {index}"))
        settings = option.DatabaseSettings(limited_url, sync_on_startup=True)
        with pytest.raises((sa.exc.SQLAlchemyError, db_exc.DBError)):
            assembly.connect(settings, migration.SCHEMA)


def test_a_migration_during_traffic_fails_no_request(
    database: Database,
) -> None:
    client = Client(app.build(make_config(), database))
    provider = client.make_provider(VCPU=100_000)
    ended = threading.Event()
    path = f"/resource_providers/{provider}"

    def work() -> Counter[int]:
        seen: Counter[int] = Counter()
        while not ended.is_set():
            claim = client.claim(new_uuid(), {provider: {"VCPU": 1}})
            found = client.call("GET", "/allocation_candidates?resources=VCPU:1")
            traits = client.call("GET", f"{path}/traits")
            seen.update((claim.status, found.status, traits.status))
        return seen

    with ThreadPoolExecutor(3) as pool:
        workers = [pool.submit(work) for _ in range(3)]
        try:
            for _ in range(4):
                lose_table(database)
                execute(database, sa.delete(VERSION))
                time.sleep(0.1)
                migration.SCHEMA.upgrade(database)
                time.sleep(0.1)
        finally:
            ended.set()
        statuses = sum((each.result() for each in workers), Counter())
    assert statuses.keys() <= {200, 204}, statuses
    assert statuses[204] > 3

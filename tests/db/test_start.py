"""The start of the service: where options come from, and what stops it."""

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import sqlalchemy as sa
from oslo_config import cfg

from placement import app, conf
from placement.db import migration
from placement.forest import cache
from placement.objects import standard_name
from placement.objects.journal import filing
from placement.objects.ledger import Ledger
from placement_foundation import option
from placement_foundation.database import storage
from placement_foundation.database.migration import MigrationError
from placement_foundation.database.storage import Database
from placement_foundation.serving.background import Chore
from tests.client import Client
from tests.db import legacy

CHANGES = ("CREATE", "ALTER", "DROP", "INSERT", "UPDATE", "DELETE")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a machine without any configuration."""
    for name in ("OS_PLACEMENT_CONFIG_DIR", "OS_PLACEMENT_DATABASE__CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__MAX_RETRIES", "1")
    return tmp_path


@pytest.fixture
def ready(
    home: Path, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[str]]:
    """Name an empty database in the environment, and believe callers.

    Gives a list that each statement is added to.
    """
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", empty_url)
    monkeypatch.setenv("OS_API__AUTH_STRATEGY", "noauth2")
    statements: list[str] = []
    opened: list[Database] = []
    connect = storage.connect

    def note(_conn: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    def watched(settings: option.DatabaseSettings) -> Database:
        database = connect(settings)
        sa.event.listen(database.engine, "before_cursor_execute", note)
        opened.append(database)
        return database

    monkeypatch.setattr(storage, "connect", watched)
    yield statements
    for database in opened:
        database.engine.dispose()


def write(path: Path, **options: str) -> Path:
    """Write a file with options, which are named GROUP__NAME."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, value in options.items():
        group, _, option = name.partition("__")
        lines += [f"[{group}]", f"{option} = {value}"]
    path.write_text("\n".join(lines) + "\n")
    return path


def connection(config: cfg.ConfigOpts) -> str:
    return str(config.placement_database.connection)


def pool_of(database: Database) -> sa.pool.QueuePool:
    pool = database.engine.pool
    assert isinstance(pool, sa.pool.QueuePool)
    return pool


def read_for_service() -> cfg.ConfigOpts:
    """Return the configuration as a web server gets it: there are no arguments."""
    return conf.read([], option.list_files(os.environ, conf.PROJECT))


def start() -> Client:
    return Client(app.start(read_for_service()))


class TestSources:
    @pytest.mark.parametrize(
        ("directory", "files", "expected"),
        [
            ("there", ["there/placement.conf", "placement.conf"], 0),
            (" ", ["placement.conf"], 0),
            (None, [".placement/placement.conf", "placement.conf"], 0),
            (
                None,
                [
                    "placement.conf",
                    "placement.conf.d/2.conf",
                    "placement.conf.d/1.conf",
                ],
                1,
            ),
            (
                "there",
                ["there/placement.conf", ".placement/placement.conf.d/1.conf"],
                1,
            ),
        ],
    )
    def test_a_file_of_the_usual_places_counts(
        self,
        home: Path,
        monkeypatch: pytest.MonkeyPatch,
        directory: str | None,
        files: list[str],
        expected: int,
    ) -> None:
        if directory:
            path = str(home / directory) if directory.strip() else directory
            monkeypatch.setenv("OS_PLACEMENT_CONFIG_DIR", path)
        for number, file in enumerate(files):
            write(home / file, placement_database__connection=f"{number}://")
        assert connection(read_for_service()) == f"{expected}://"

    def test_the_directory_of_the_environment_must_hold_the_file(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(home / "placement.conf", placement_database__connection="home://")
        monkeypatch.setenv("OS_PLACEMENT_CONFIG_DIR", str(home / "there"))
        with pytest.raises(cfg.ConfigFilesNotFoundError, match="there"):
            read_for_service()

    def test_the_environment_wins_over_files(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(home / "placement.conf", placement_database__connection="home://")
        monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", "environment://")
        monkeypatch.setenv("OS_DEFAULT__DEBUG", "yes")
        config = read_for_service()
        assert connection(config) == "environment://"
        assert config.debug is True

    def test_arguments_of_the_process_are_not_looked_at(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", "environment://")
        monkeypatch.setattr(sys, "argv", ["uwsgi", "--config-file", "nonsense"])
        assert connection(read_for_service()) == "environment://"

    def test_unknown_options_and_groups_are_ignored(self, home: Path) -> None:
        write(
            home / "placement.conf",
            placement_database__connection="home://",
            profiler__enabled="true",
            api__no_such_option="1",
        )
        assert connection(read_for_service()) == "home://"

    def test_an_old_place_of_the_strategy_is_read(self, home: Path) -> None:
        write(
            home / "placement.conf",
            placement_database__connection="home://",
            DEFAULT__auth_strategy="noauth2",
        )
        assert read_for_service().api.auth_strategy == "noauth2"

    def test_values_may_refer_to_other_options(self, home: Path) -> None:
        write(
            home / "placement.conf",
            DEFAULT__state_path="/somewhere",
            placement_database__connection="sqlite:///$state_path/placement.db",
        )
        assert connection(read_for_service()).endswith("//somewhere/placement.db")


class TestRefusals:
    def test_without_a_connection_it_does_not_start(self, home: Path) -> None:
        with pytest.raises(cfg.RequiredOptError) as refusal:
            read_for_service()
        assert "option connection in group [placement_database]" in str(refusal.value)

    @pytest.mark.usefixtures("ready")
    def test_an_unknown_revision_stops_a_start_that_migrates(
        self, empty: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.make_newer(empty)
        monkeypatch.setenv("OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP", "true")
        with pytest.raises(MigrationError, match="feed"):
            start()

    @pytest.mark.usefixtures("ready")
    def test_an_unknown_revision_does_not_matter_otherwise(
        self, empty: Database
    ) -> None:
        self.make_newer(empty)
        assert start().call("GET", "/resource_providers").status == 200
        assert migration.SCHEMA.version(empty) == "feed"

    def make_newer(self, database: Database) -> None:
        migration.SCHEMA.upgrade(database)
        with database.engine.begin() as connection:
            legacy.execute(
                connection, "UPDATE alembic_version SET version_num = 'feed'"
            )


@pytest.mark.usefixtures("ready")
class TestDatabase:
    def test_the_schema_is_migrated_if_asked_for(
        self, empty: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP", "true")
        client = start()
        assert migration.SCHEMA.version(empty) == migration.SCHEMA.head
        classes = client.get("/resource_classes")["resource_classes"]
        assert classes[0]["name"] == "VCPU"

    def test_traits_and_classes_are_synchronised_at_every_start(
        self, empty: Database
    ) -> None:
        migration.SCHEMA.upgrade(empty)
        start()
        with empty.engine.begin() as connection:
            legacy.execute(connection, "DELETE FROM traits WHERE name = 'HW_NIC_SRIOV'")
        client = start()
        assert client.call("GET", "/traits/HW_NIC_SRIOV").status == 204

    def test_statements_are_logged_with_their_place(
        self, empty_url: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        settings = option.DatabaseSettings(
            empty_url, connection_debug=50, connection_trace=True
        )
        engine = storage.connect(settings).engine
        try:
            with engine.connect() as connection:
                connection.execute(sa.text("SELECT 1"))
        finally:
            engine.dispose()
            logging.getLogger("sqlalchemy.engine").setLevel(logging.NOTSET)
        (line,) = [each for each in caplog.messages if each.startswith("SELECT 1  --")]
        assert f"File: {__file__}" in line

    def test_no_connection_is_open_when_a_server_may_fork(
        self, empty: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        migration.SCHEMA.upgrade(empty)
        opened: list[Database] = []
        connect = storage.connect

        def note(settings: option.DatabaseSettings) -> Database:
            opened.append(connect(settings))
            return opened[-1]

        monkeypatch.setattr(storage, "connect", note)
        client = start()
        assert [pool_of(database).checkedin() for database in opened] == [0]
        assert client.call("GET", "/traits").status == 200
        assert [pool_of(database).checkedin() for database in opened] == [1]

    def test_chores_leave_a_long_start_alone(
        self, empty: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        migration.SCHEMA.upgrade(empty)
        order: list[str] = []

        def load(database: Database, kept: cache.CachedForest) -> None:
            order.append("the cloud is read")

        # Not by their threads: those of another application may still be running.
        def wait(given: list[Chore]) -> Any:
            order.append("chores wait for a fork")
            return mock.Mock()

        monkeypatch.setattr(cache, "warm_up", load)
        monkeypatch.setattr(app, "Chores", wait)
        start()
        assert order == ["the cloud is read", "chores wait for a fork"]

    @pytest.mark.parametrize(
        ("option", "chores"),
        [
            ("LEDGER__EXPIRE_LEASES", {"ending leases"}),
            (
                "LEDGER__KEEP_JOURNAL_DAYS",
                {"tidying the journal", "recording gaps"},
            ),
            (
                "PLACEMENT__KEEP_FOREST",
                {"comparing the forest", "reading the forest again"},
            ),
        ],
    )
    def test_what_is_switched_off_is_not_done_beside_requests(
        self,
        option: str,
        chores: set[str],
        empty: Database,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        migration.SCHEMA.upgrade(empty)
        done: list[set[str]] = []

        def note(given: list[Chore]) -> Any:
            done.append({each.name for each in given})
            return mock.Mock()

        monkeypatch.setattr(app, "Chores", note)
        start()
        monkeypatch.setenv(f"OS_{option}", "0")
        start()
        assert done[0] - done[1] == chores
        assert done[1]

    def test_a_database_that_lacks_nothing_is_not_written(
        self,
        empty: Database,
        ready: list[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        migration.SCHEMA.upgrade(empty)
        legacy.fill(empty)
        standard_name.synchronise(Ledger(empty))
        filing.switch(empty, on=True)
        monkeypatch.setenv("OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP", "true")
        ready.clear()
        client = start()
        assert client.call("GET", "/resource_providers").status == 200
        assert ready
        # Those that change no row find out what the user may write.
        written = [line for line in ready if not line.endswith("false = 1")]
        assert not [line for line in written if line.lstrip().startswith(CHANGES)]

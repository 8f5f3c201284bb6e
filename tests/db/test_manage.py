"""``placement-manage``: arguments, output and exit codes."""

import os
import subprocess
import sys
import uuid
from importlib import metadata
from pathlib import Path

import os_traits
import pytest
import sqlalchemy as sa

from placement.cmd import manage
from placement.db import migration, models
from placement.objects import online_migration
from placement.objects.ledger import Ledger
from placement.objects.transaction import Transaction
from placement_foundation.database.storage import Database
from tests import programs
from tests.db import legacy

MODULE = "placement.cmd.manage"


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a machine without any configuration."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__MAX_RETRIES", "1")
    monkeypatch.delenv("OS_PLACEMENT_DATABASE__CONNECTION", raising=False)


@pytest.fixture
def configured(nowhere: None, empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a machine with an empty database."""
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", empty_url)


@pytest.fixture
def migrated(configured: None, empty: Database) -> Database:
    migration.SCHEMA.upgrade(empty)
    return empty


@pytest.fixture
def broken(migrated: Database) -> Database:
    """Give a database with 60 providers and 5 consumers to repair."""
    with migrated.engine.begin() as connection:
        legacy.insert(
            connection,
            "resource_providers",
            *(
                {"uuid": f"uuid {number}", "name": f"name {number}", "generation": 0}
                for number in range(60)
            ),
        )
        for number in range(5):
            row = {"resource_provider_id": 1, "resource_class_id": 0, "used": 1}
            legacy.insert(
                connection, "allocations", {"consumer_id": f"orphan {number}", **row}
            )
    return migrated


def table(*rows: tuple[str, str, str]) -> str:
    """Return the table of online data migrations, its cells as they are given."""
    width = max(len(row[0]) for row in rows)
    line = f"+{'-' * width}+-------------+-----------+"
    head = f"|{'Migration'.center(width)}| Total Found | Completed |"
    cells = [f"|{name}|{found}|{done}|" for name, found, done in rows]
    return "\n".join([line, head, line, *cells, line]) + "\n"


def refusal(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as refused:
        manage.main(arguments)
    return refused.value.code


@pytest.mark.usefixtures("configured")
class TestUsage:
    @pytest.mark.parametrize(
        ("category", "actions"),
        [
            ("db", "{sync,version,stamp,online_data_migrations}"),
            ("os-traits", "{sync}"),
        ],
    )
    def test_a_category_alone_shows_its_actions(
        self, capsys: pytest.CaptureFixture[str], category: str, actions: str
    ) -> None:
        assert manage.main([category]) == 0
        output = capsys.readouterr()
        assert actions in output.out
        assert output.err == ""

    @pytest.mark.parametrize(
        "arguments",
        [
            ["-h"],
            ["--help"],
            ["db", "-h"],
            ["db", "sync", "-h"],
            ["db", "version", "-h"],
            ["db", "stamp", "-h"],
            ["db", "online_data_migrations", "-h"],
            ["os-traits", "-h"],
            ["os-traits", "sync", "-h"],
        ],
    )
    def test_help_is_output(
        self, capsys: pytest.CaptureFixture[str], arguments: list[str]
    ) -> None:
        assert refusal(*arguments) == 0
        output = capsys.readouterr()
        words = [word for word in arguments if not word.startswith("-")]
        assert " ".join(["usage: placement-manage", *words]) in output.out
        assert output.err == ""

    @pytest.mark.parametrize(
        "arguments",
        [
            ["nonsense"],
            ["db", "nonsense"],
            ["db", "stamp"],
            ["db", "sync", "head"],
            ["db", "version", "surplus"],
            ["--nonsense", "db", "version"],
            ["db", "online_data_migrations", "--max-count"],
        ],
    )
    def test_what_cannot_be_understood_is_an_error(
        self, capsys: pytest.CaptureFixture[str], arguments: list[str]
    ) -> None:
        assert refusal(*arguments) == 2
        output = capsys.readouterr()
        assert output.out == ""
        assert output.err.startswith("usage: placement-manage")
        assert "error: " in output.err

    def test_the_version_of_the_software_is_printed_bare(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert refusal("--version") == 0
        version = metadata.version("placement-server")
        assert capsys.readouterr().out == f"{version}\n"

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--debug"],
            ["-d"],
            ["--nodebug"],
            ["--log-file", "placement.log"],
            ["--logfile", "placement.log"],
            ["--log-dir", "log"],
            ["--logdir", "log"],
            ["--log-config-append", "logging.ini"],
            ["--log-config", "logging.ini"],
            ["--log_config", "logging.ini"],
            ["--log-date-format", "%H"],
            ["--use-syslog"],
            ["--nouse-syslog"],
            ["--use-journal"],
            ["--nouse-journal"],
            ["--use-json"],
            ["--nouse-json"],
            ["--syslog-log-facility", "LOG_USER"],
        ],
    )
    def test_logging_options_are_taken_and_change_nothing(
        self, capsys: pytest.CaptureFixture[str], arguments: list[str]
    ) -> None:
        assert manage.main([*arguments, "db", "version"]) == 0
        assert capsys.readouterr() == ("None\n", HINT)


HINT = "the database has no revision: run placement-manage db sync\n"


class TestConfiguration:
    @pytest.mark.embedded
    def test_without_arguments_it_shows_its_help(self, tmp_path: Path) -> None:
        code, output, error = programs.run(MODULE, home=tmp_path)
        assert (code, error) == (1, "")
        assert output.startswith("usage: placement-manage")

    @pytest.mark.embedded
    def test_a_missing_connection_is_named(self, tmp_path: Path) -> None:
        code, output, error = programs.run(MODULE, "db", "version", home=tmp_path)
        assert (code, output) == (1, "")
        assert error.startswith(
            "placement-manage: value required for option connection in group "
            "[placement_database]\n"
        )
        assert "OS_PLACEMENT_DATABASE__CONNECTION is not set" in error
        assert "these files do not name one: there are none\n" in error
        assert "placement-manage --config-file PATH db version\n" in error

    @pytest.mark.embedded
    def test_a_file_that_names_no_database_is_named(self, tmp_path: Path) -> None:
        file = tmp_path / "some.conf"
        file.write_text("[placement_database]\nconnect = sqlite://\n")
        given = ("--config-file", str(file), "db", "version")
        code, _, error = programs.run(MODULE, *given, home=tmp_path)
        assert code == 1
        assert f"these files do not name one: {file}\n" in error

    @pytest.mark.embedded
    def test_the_last_line_of_the_error_is_a_command_that_works(
        self, tmp_path: Path
    ) -> None:
        environment = {
            **programs.environment(tmp_path),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        with programs.serving("placement.cmd.api", "--workers", "1", home=tmp_path):
            for module, given, ends in (
                (MODULE, ("db", "version"), "a082b8bb98d0\n"),
                (MODULE, ("os-traits", "sync"), "no trait was missing\n"),
                ("placement.cmd.status", ("upgrade", "check"), ""),
            ):
                code, _, error = programs.run(module, *given, home=tmp_path)
                assert code == 1
                command = error.splitlines()[-1]
                done = subprocess.run(
                    ["bash", "-c", command],
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=True,
                )
                assert done.stdout.endswith(ends)

    @pytest.mark.usefixtures("nowhere")
    def test_files_and_directories_may_be_given(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, empty_url: str
    ) -> None:
        first, directory = tmp_path / "first.conf", tmp_path / "conf.d"
        directory.mkdir()
        first.write_text("[placement_database]\nconnection = nonsense://\n")
        (directory / "later.conf").write_text(
            f"[placement_database]\nconnection = {empty_url}\n"
        )
        given = ["--config-file", str(first), "--config-dir", str(directory)]
        assert manage.main([*given, "db", "version"]) == 0
        assert capsys.readouterr().out == "None\n"

    @pytest.mark.usefixtures("nowhere")
    def test_the_file_at_home_is_found(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, empty_url: str
    ) -> None:
        text = f"[placement_database]\nconnection = {empty_url}\n"
        (tmp_path / ".placement").mkdir()
        (tmp_path / ".placement" / "placement.conf").write_text(text)
        assert manage.main(["db", "version"]) == 0
        assert capsys.readouterr().out == "None\n"

    @pytest.mark.usefixtures("configured")
    def test_the_directory_of_the_service_is_not_looked_at(
        self,
        capsys: pytest.CaptureFixture[str],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("OS_PLACEMENT_CONFIG_DIR", str(tmp_path / "missing"))
        assert manage.main(["db", "version"]) == 0
        assert capsys.readouterr().out == "None\n"


class TestDatabase:
    def test_sync_migrates_and_says_nothing(
        self,
        configured: None,
        empty: Database,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        for _ in range(2):
            assert manage.main(["db", "sync"]) == 0
            assert capsys.readouterr() == ("", "")
        assert migration.SCHEMA.version(empty) == migration.SCHEMA.head
        traits = sa.select(sa.func.count()).select_from(models.Trait)
        assert empty.read(lambda connection: connection.scalar(traits)) == 0

    def test_stamp_records_a_revision(
        self, migrated: Database, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert manage.main(["db", "stamp", legacy.TABLES]) == 0
        assert manage.main(["db", "version"]) == 0
        assert manage.main(["db", "stamp", "base"]) == 0
        assert manage.main(["db", "version"]) == 0
        assert capsys.readouterr() == (f"{legacy.TABLES}\nNone\n", HINT)

    @pytest.mark.parametrize("revision", ["feed", ""])
    def test_an_unknown_revision_is_reported(
        self, empty_url: str, tmp_path: Path, revision: str
    ) -> None:
        code, output, error = programs.run(
            MODULE, "db", "stamp", revision, home=tmp_path, connection=empty_url
        )
        assert (code, output) == (1, "")
        assert error.endswith(f"Can't locate revision identified by '{revision}'\n")
        assert "Traceback" not in error

    def test_debugging_shows_more(self, empty_url: str, tmp_path: Path) -> None:
        arguments = ["--debug", "db", "stamp", "feed"]
        _, _, error = programs.run(
            MODULE, *arguments, home=tmp_path, connection=empty_url
        )
        assert "Traceback" in error

    @pytest.mark.parametrize("driver", ["pymysql", "psycopg"])
    def test_a_driver_that_is_not_installed_is_named(
        self,
        nowhere: None,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        driver: str,
    ) -> None:
        for module in ("pymysql", "MySQLdb", "psycopg", "psycopg2"):
            monkeypatch.setitem(sys.modules, module, None)
        backend = "mysql" if driver == "pymysql" else "postgresql"
        url = f"{backend}+{driver}://u@127.0.0.1:1/x"
        monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", url)
        assert manage.main(["db", "version"]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.endswith(f"{backend} is installed, such as {driver}")

    # A process for each takes two seconds.
    @pytest.mark.parametrize(
        ("url", "action", "code"),
        [
            ("foo", "sync", 1),
            ("oracle://a/b", "version", 1),
            ("mysql+pymysql://u@127.0.0.1:1", "version", 1),
            ("mysql+pymysql://u@127.0.0.1:1/x?colour=red", "version", 1),
            ("mysql+pymysql://u@127.0.0.1:1/x?charset=utf-8", "version", 1),
            ("postgresql+psycopg://u@127.0.0.1:1/x", "sync", 1),
            ("postgresql+psycopg://u@127.0.0.1:1/x", "online_data_migrations", 2),
        ],
    )
    def test_an_unusable_database_is_reported_in_one_line(
        self, nowhere: None, tmp_path: Path, url: str, action: str, code: int
    ) -> None:
        told = programs.run(MODULE, "db", action, home=tmp_path, connection=url)
        assert told[:2] == (code, "")
        (line,) = told[2].splitlines()
        assert line.startswith("placement-manage: ")


class TestOnlineDataMigrations:
    def test_a_healthy_database_needs_none(
        self, migrated: Database, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert manage.main(["db", "online_data_migrations"]) == 0
        assert capsys.readouterr() == (
            "Running batches of 50 until complete\n"
            + table(
                ("    set_root_provider_ids    ", "      0      ", "     0     "),
                (" create_incomplete_consumers ", "      0      ", "     0     "),
            ),
            "",
        )
        # Their owners are recorded though there are none.
        with migrated.engine.connect() as connection:
            for name in (models.Project.external_id, models.User.external_id):
                names = connection.scalars(sa.select(name)).all()
                assert names == [str(uuid.UUID(int=0))]

    def test_what_is_there_stays(self, broken: Database) -> None:
        provider, consumer = models.ResourceProvider, models.Consumer
        with broken.engine.begin() as connection:
            ids = connection.scalars(sa.select(provider.id).order_by(provider.id))
            root, child, *_ = ids
            placed = sa.update(provider).where(provider.id == child)
            connection.execute(placed.values(root_provider_id=root))
        assert manage.main(["db", "online_data_migrations"]) == 0
        with broken.engine.begin() as connection:
            connection.execute(sa.update(consumer).values(generation=9))
        assert manage.main(["db", "online_data_migrations"]) == 0
        with broken.engine.connect() as connection:
            stored = sa.select(provider.root_provider_id).where(provider.id == child)
            assert connection.scalar(stored) == root
            generations = connection.scalars(sa.select(consumer.generation))
            assert set(generations) == {9}

    def test_an_owner_may_be_spelled_otherwise(self, broken: Database) -> None:
        def create(tx: Transaction) -> int:
            return online_migration.create_incomplete_consumers(
                tx, 50, project="team", user="robot"
            )

        with broken.engine.begin() as connection:
            connection.execute(sa.insert(models.Project).values(external_id="Team"))
            connection.execute(sa.insert(models.User).values(external_id="Robot"))
        # MySQL considers both names the same.
        assert Ledger(broken).write(create) == 5
        assert broken.read(online_migration.count_incomplete_consumers) == 0

    def test_all_is_repaired_in_batches(
        self, broken: Database, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert manage.main(["db", "online_data_migrations"]) == 0
        assert capsys.readouterr().out == (
            "Running batches of 50 until complete\n"
            "50 rows matched query set_root_provider_ids, 50 migrated\n"
            "10 rows matched query set_root_provider_ids, 10 migrated\n"
            "5 rows matched query create_incomplete_consumers, 5 migrated\n"
            + table(
                ("    set_root_provider_ids    ", "      60     ", "     60    "),
                (" create_incomplete_consumers ", "      5      ", "     5     "),
            )
        )
        assert not broken.read(online_migration.has_providers_without_root)
        assert broken.read(online_migration.count_incomplete_consumers) == 0

    def test_a_limit_is_for_all_migrations_together(
        self, broken: Database, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert manage.main(["db", "online_data_migrations", "--max-count", "62"]) == 1
        assert capsys.readouterr().out == (
            "60 rows matched query set_root_provider_ids, 60 migrated\n"
            "2 rows matched query create_incomplete_consumers, 2 migrated\n"
            + table(
                ("    set_root_provider_ids    ", "      60     ", "     60    "),
                (" create_incomplete_consumers ", "      2      ", "     2     "),
            )
        )

    def test_a_used_up_limit_leaves_the_rest_out(
        self, broken: Database, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert manage.main(["db", "online_data_migrations", "--max-count", "60"]) == 1
        assert capsys.readouterr().out == (
            "60 rows matched query set_root_provider_ids, 60 migrated\n"
            + table((" set_root_provider_ids ", "      60     ", "     60    "))
        )

    def test_the_exit_code_says_whether_to_come_again(self, broken: Database) -> None:
        command = ["db", "online_data_migrations", "--max-count", "50"]
        assert [manage.main(command) for _ in range(3)] == [1, 1, 0]

    def test_a_limit_beyond_all_numbers_is_no_limit(self, broken: Database) -> None:
        command = ["db", "online_data_migrations", "--max-count", "9" * 30]
        assert [manage.main(command) for _ in range(2)] == [1, 0]

    @pytest.mark.parametrize("count", ["0", "-1", "many", "", "1.5"])
    def test_a_limit_must_be_a_positive_number(
        self, broken: Database, capsys: pytest.CaptureFixture[str], count: str
    ) -> None:
        command = ["db", "online_data_migrations", "--max-count", count]
        assert manage.main(command) == 127
        assert capsys.readouterr() == (
            "Must supply a positive value for max_count\n",
            "",
        )
        assert broken.read(online_migration.has_providers_without_root)

    def test_a_failure_does_not_stop_the_other_migrations(
        self,
        broken: Database,
        capsys: pytest.CaptureFixture[str],
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def fail(*_arguments: object) -> int:
            raise LookupError("out of order")

        monkeypatch.setattr(online_migration, "set_root_provider_ids", fail)
        assert manage.main(["db", "online_data_migrations"]) == 2
        assert capsys.readouterr().out == (
            "Running batches of 50 until complete\n"
            "Error attempting to run set_root_provider_ids\n"
            "5 rows matched query create_incomplete_consumers, 5 migrated\n"
            "Error attempting to run set_root_provider_ids\n"
            + table(
                ("    set_root_provider_ids    ", "      0      ", "     0     "),
                (" create_incomplete_consumers ", "      5      ", "     5     "),
            )
            + "Some migrations failed unexpectedly. Check log for details.\n"
        )
        assert "LookupError: out of order" in caplog.text

    def test_a_failure_besides_progress_is_reported_the_next_time(
        self, broken: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_arguments: object) -> int:
            raise LookupError("out of order")

        monkeypatch.setattr(online_migration, "set_root_provider_ids", fail)
        command = ["db", "online_data_migrations", "--max-count", "50"]
        assert [manage.main(command) for _ in range(2)] == [1, 2]

    def test_repaired_consumers_belong_to_whom_the_options_say(
        self, broken: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OS_PLACEMENT__INCOMPLETE_CONSUMER_PROJECT_ID", "lost")
        monkeypatch.setenv("OS_PLACEMENT__INCOMPLETE_CONSUMER_USER_ID", "found")
        assert manage.main(["db", "online_data_migrations"]) == 0
        names = sa.union_all(
            sa.select(models.Project.external_id), sa.select(models.User.external_id)
        )
        found = broken.read(lambda connection: set(connection.scalars(names)))
        assert found == {"lost", "found"}


class TestTraits:
    def test_missing_traits_are_added_and_printed(
        self, migrated: Database, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert manage.main(["os-traits", "sync"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines == [f"added {name}" for name in sorted(os_traits.get_traits())]
        stored = migrated.read(
            lambda connection: set(connection.scalars(sa.select(models.Trait.name)))
        )
        assert stored == set(os_traits.get_traits())
        assert manage.main(["os-traits", "sync"]) == 0
        assert capsys.readouterr() == ("no trait was missing\n", "")

"""Copies of a whole database: between kinds of databases, and damaged ones."""

import gzip
import hashlib
import json
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from placement import app
from placement.cmd import copying as file
from placement.cmd import manage
from placement.db import migration, models
from placement.demonstration import planting
from placement.objects import copying
from placement.objects.journal import recording
from placement_foundation.database.storage import Database
from placement_foundation.observing import progress
from tests import backends, settings
from tests.client import Client, new_uuid

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

# How many bytes more may be in memory if eight times as much is copied.
GROWTH = 500_000


@pytest.fixture
def planted(database: Database) -> Database:
    """A database with hosts, children, shared storage, consumers, custom names."""
    database.write(lambda connection: planting.plant(connection, 12))
    return database


@contextmanager
def embedded(directory: Path) -> Iterator[Database]:
    database = backends.connect(f"sqlite:///{directory / 'embedded.db'}")
    migration.SCHEMA.upgrade(database)
    yield database
    database.engine.dispose()


def lines_of(database: Database) -> list[Any]:
    return database.look(lambda connection: list(copying.read(connection)))


# MariaDB and MySQL keep these to the second.
TIMES = ("created_at", "updated_at")


def rows_of(lines: list[Any]) -> dict[str, list[Any]]:
    """Return the rows of a copy by table, with values as every database has them."""
    found: dict[str, list[Any]] = {}
    for line in lines[1:]:
        if isinstance(line, dict):
            columns = line["columns"]
            rows = found.setdefault(line["table"], [])
        else:
            rows.append([_rounded(*each) for each in zip(columns, line, strict=True)])
    return found


def _rounded(column: str, value: Any) -> Any:
    if column in TIMES and value:
        return value.partition(".")[0]
    return round(value, 4) if isinstance(value, float) else value


def empty(database: Database) -> None:
    database.write(backends.empty_placement)


def run(url: str, monkeypatch: pytest.MonkeyPatch, *command: str) -> int:
    """Run ``placement-manage`` on a database, and return its exit code."""
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", url)
    return manage.main(command)


def fleet(application: "WSGIApplication") -> Any:
    document = Client(application).get("/ledger/v1/fleet?fields=inventories,usages")
    return document["providers"]


EVERYTHING = "inventories,traits,aggregates,usages,consumers"
# Where the service lists what it has, and the lists.
LISTS = {
    f"/ledger/v1/fleet?fields={EVERYTHING}": ["providers"],
    "/ledger/v1/declared": ["declared"],
    "/ledger/v1/leases": ["leases"],
    "/ledger/v1/audits": ["audits"],
    "/ledger/v1/names": ["aggregates", "projects"],
    "/traits": ["traits"],
}


def everything(database: Database) -> list[Any]:
    """Return all that the service says of a database."""
    client = Client(app.build(settings.make_config(), database))
    return [client.get(path)[name] for path, names in LISTS.items() for name in names]


# The databases that a copy goes to from the one that is tested.
OTHERS = {
    "sqlite": ["sqlite"],
    "postgresql": ["mysql", "sqlite"],
    "mysql": ["postgresql", "sqlite"],
}


def fill_our_own_tables(client: Client) -> None:
    """Let the service write to each of its tables, names of all kinds among it."""
    declared = {
        "aggregates": {"Größe": new_uuid()},
        "projects": {"☃ 😀": "web"},
        "trees": [
            {
                "name": "Gerät",
                "inventories": {"VCPU": {"total": 8, "allocation_ratio": 1.1}},
            }
        ],
    }
    answer = client.call("POST", "/ledger/v1/apply", declared)
    [host] = answer.document["trees"]
    assert client.get(f"/ledger/v1/history?provider={host['uuid']}")["history"]
    consumer = new_uuid()
    client.claim(consumer, {host["uuid"]: {"VCPU": 1}})
    client.call("PUT", f"/ledger/v1/leases/{consumer}", {"seconds": 3600})
    audit = {"claims": 1, "living": 1, "not_judged": 0, "counts": {}, "findings": []}
    client.call("PUT", "/ledger/v1/audits/nova", audit)


@pytest.mark.parametrize("other", OTHERS[backends.KIND])
def test_a_cloud_moves_to_another_kind_of_database_and_back(
    planted: Database,
    application: "WSGIApplication",
    tmp_path: Path,
    empty_url: str,
    monkeypatch: pytest.MonkeyPatch,
    other: str,
) -> None:
    fill_our_own_tables(Client(application))
    said, before = everything(planted), rows_of(lines_of(planted))
    assert all(said)
    assert all(before.values())
    url = planted.engine.url.render_as_string(hide_password=False)
    with backends.empty_database(tmp_path, other) as between:
        for number, target in enumerate((between, empty_url)):
            copy = str(tmp_path / f"{number}.copy")
            assert run(url, monkeypatch, "export", copy) == 0
            assert run(target, monkeypatch, "import", copy) == 0
            assert run(target, monkeypatch, "check") == 0
            moved = backends.connect(target)
            after = rows_of(lines_of(moved))
            # There, readers of the journal are told to begin anew.
            added = after["journal_inbox"][len(before["journal_inbox"]) :]
            assert all('"journal.gap"' in entries for _, _, entries in added)
            del after["journal_inbox"][len(before["journal_inbox"]) :]
            assert after == before
            assert everything(moved) == said
            moved.engine.dispose()
            url = target


def test_a_copy_is_of_one_moment(
    planted: Database, application: "WSGIApplication"
) -> None:
    client = Client(application)
    before = rows_of(lines_of(planted))

    def read(connection: sa.Connection) -> list[Any]:
        lines = copying.read(connection)
        begun = [next(lines)]
        host = client.make_provider(VCPU=4)
        assert client.claim(new_uuid(), {host: {"VCPU": 1}}).status == 204
        return [*begun, *lines]

    assert rows_of(planted.look(read)) == before
    assert rows_of(lines_of(planted)) != before


def test_it_goes_on_counting_where_the_copy_ends(
    planted: Database, application: "WSGIApplication"
) -> None:
    lines = lines_of(planted)
    empty(planted)
    planted.write(lambda connection: copying.write(connection, lines))
    client = Client(application)
    host = client.make_provider(VCPU=4)
    client.call("PUT", "/traits/CUSTOM_AFTERWARDS")
    assert client.get(f"/resource_providers/{host}/usages")["usages"] == {"VCPU": 0}


def test_processes_that_keep_the_cloud_notice_it(
    planted: Database, application: "WSGIApplication"
) -> None:
    before = fleet(application)
    lines = lines_of(planted)
    planted.write(recording.note_everything)
    empty(planted)
    assert fleet(application) == []
    planted.write(lambda connection: copying.write(connection, lines))
    assert fleet(application) == before


def test_providers_may_refer_to_later_ones(planted: Database) -> None:
    lines = lines_of(planted)
    start = next(
        number
        for number, line in enumerate(lines)
        if isinstance(line, dict) and line.get("table") == "resource_providers"
    )
    end = next(
        number
        for number in range(start + 1, len(lines))
        if isinstance(lines[number], dict)
    )
    lines[start + 1 : end] = reversed(lines[start + 1 : end])
    before = rows_of(lines_of(planted))
    empty(planted)
    planted.write(lambda connection: copying.write(connection, lines))
    assert rows_of(lines_of(planted)) == before


def test_a_database_that_is_not_empty_is_left_alone(
    planted: Database, tmp_path: Path
) -> None:
    before = lines_of(planted)
    with pytest.raises(copying.NotEmpty, match="there are rows in"):
        planted.write(lambda connection: copying.write(connection, before))
    assert lines_of(planted) == before


def test_nothing_is_overwritten(
    planted: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = planted.engine.url.render_as_string(hide_password=False)
    path = tmp_path / "cloud.copy"
    assert run(url, monkeypatch, "export", str(path)) == 0
    before = planted.look(backends.rows_of), path.read_bytes()
    for command, words in (
        ("export", f"{path} exists already"),
        ("import", "The database is not empty: there are rows in "),
    ):
        capsys.readouterr()
        assert run(url, monkeypatch, command, str(path)) == 1
        [line] = capsys.readouterr().err.splitlines()
        assert words in line
        assert (planted.look(backends.rows_of), path.read_bytes()) == before


@pytest.mark.skipif(backends.KIND != "sqlite", reason="of the command, not of SQL")
def test_a_database_that_is_not_there_is_not_made_by_an_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing.db"
    copy = str(tmp_path / "cloud.copy")
    assert run(f"sqlite:///{missing}", monkeypatch, "export", copy) == 1
    shown = capsys.readouterr().err
    assert shown == f"placement-manage: there is no database at {missing}\n"
    assert list(tmp_path.iterdir()) == []


def damaged(kind: str, lines: list[Any]) -> list[Any]:
    """Return a copy with a fault of a kind."""
    if kind == "nothing":
        return []
    if kind == "another format":
        return [{"format": "tar"}, *lines[1:]]
    if kind == "a later version":
        return [{**lines[0], "version": 99}, *lines[1:]]
    if kind == "an unknown table":
        return [lines[0], {"table": "quotas", "columns": ["id"]}, [1]]
    if kind == "an unknown column":
        return [lines[0], {"table": "traits", "columns": ["id", "colour"]}, [1, "red"]]
    if kind == "a row of nothing":
        return [lines[0], [1, 2], *lines[1:]]
    row = next(number for number, line in enumerate(lines) if isinstance(line, list))
    changed = lines[row][:-1] if kind == "a short row" else [*lines[row][:-1], "x"]
    if kind == "a time that is none":
        changed = ["yesterday", *lines[row][1:]]
    return [*lines[:row], changed, *lines[row + 1 :]]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("nothing", "not a copy"),
        ("another format", "not a copy"),
        ("a later version", "version 99"),
        ("an unknown table", "quotas"),
        ("an unknown column", "colour"),
        ("a row of nothing", "before the name of its table"),
        ("a short row", "damaged"),
        ("a time that is none", "damaged"),
    ],
)
def test_a_faulty_copy_leaves_nothing(
    planted: Database, kind: str, message: str
) -> None:
    lines = lines_of(planted)
    empty(planted)
    before = lines_of(planted)
    with pytest.raises(copying.Unreadable, match=message):
        planted.write(
            lambda connection: copying.write(connection, damaged(kind, lines))
        )
    assert lines_of(planted) == before


def test_half_a_file_leaves_not_even_tables(
    planted: Database,
    tmp_path: Path,
    empty_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "cloud.copy"
    file.save(path, lines_of(planted))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert run(empty_url, monkeypatch, "import", str(path)) == 1
    error = f"placement-manage: {path} is not a whole copy: "
    assert capsys.readouterr().err.startswith(error)
    untouched = backends.connect(empty_url)
    assert sa.inspect(untouched.engine).get_table_names() == []
    untouched.engine.dispose()


# Imports a copy, and is killed when half of its lines are read.
KILLED = """
import os, signal, sys
from placement.cmd import copying, manage

load = copying.load


def load_half(path):
    lines = list(load(path))
    yield from lines[: len(lines) // 2]
    os.kill(os.getpid(), signal.SIGKILL)


copying.load = load_half
manage.main(["import", sys.argv[1]])
"""


def test_an_import_that_is_killed_leaves_nothing(
    planted: Database, tmp_path: Path, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, path = lines_of(planted), tmp_path / "cloud.copy"
    file.save(path, lines)
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", empty_url)
    program = [sys.executable, "-c", KILLED, str(path)]
    assert subprocess.run(program, check=False).returncode == -signal.SIGKILL
    left = backends.connect(empty_url)
    # The tables are there; rows, those of tables that were finished too, are not.
    assert not any(rows_of(lines_of(left)).values())
    assert run(empty_url, monkeypatch, "import", str(path)) == 0
    assert run(empty_url, monkeypatch, "check") == 0
    found, before = rows_of(lines_of(left)), rows_of(lines)
    del found["journal_inbox"], before["journal_inbox"]
    assert found == before
    left.engine.dispose()


def test_rows_that_the_database_refuses_leave_nothing(
    planted: Database,
    tmp_path: Path,
    empty_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines, path = lines_of(planted), tmp_path / "cloud.copy"
    columns = [column.name for column in models.Consumer.__table__.columns]
    start = lines.index({"table": "consumers", "columns": columns})
    file.save(path, [*lines, *lines[start : start + 2]])
    assert run(empty_url, monkeypatch, "import", str(path)) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "uniq" in line.lower() or "duplicate" in line.lower()
    left = backends.connect(empty_url)
    assert rows_of(lines_of(left))["resource_providers"] == []
    left.engine.dispose()


def test_a_file_keeps_everything(planted: Database, tmp_path: Path) -> None:
    directory, lines = tmp_path / "copies", lines_of(planted)
    directory.mkdir()
    path = directory / "copy"
    rows = file.save(path, lines)
    assert rows == sum(isinstance(line, list) for line in lines)
    assert list(file.load(path)) == lines
    assert list(directory.iterdir()) == [path]


def test_a_file_that_cannot_be_finished_is_not_there(tmp_path: Path) -> None:
    def fail() -> Iterator[Any]:
        yield {"format": "x"}
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        file.save(tmp_path / "copy", fail())
    assert list(tmp_path.iterdir()) == []


def test_every_cut_of_a_file_is_noticed(planted: Database, tmp_path: Path) -> None:
    whole = tmp_path / "copy"
    file.save(whole, lines_of(planted))
    content = whole.read_bytes()
    cut = tmp_path / "cut"
    for length in range(0, len(content), max(1, len(content) // 50)):
        cut.write_bytes(content[:length])
        with pytest.raises(copying.Unreadable, match="not a whole copy"):
            file.check(cut)


def test_a_changed_row_is_noticed(planted: Database, tmp_path: Path) -> None:
    path = tmp_path / "copy"
    file.save(path, lines_of(planted))
    content = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(content.replace(b"demo-", b"Demo-", 1)))
    with pytest.raises(copying.Unreadable, match="checksum"):
        file.check(path)


def test_a_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    text = b'{"format":"placement-copy"}\n[1,\n'
    end = json.dumps(
        {"sha256": hashlib.sha256(text).hexdigest()}, separators=(",", ":")
    )
    path = tmp_path / "copy"
    path.write_bytes(gzip.compress(text + end.encode() + b"\n"))
    with pytest.raises(copying.Unreadable, match="line 2"):
        list(file.load(path))


class Counted:
    """Progress that a test looks at: the total of each part, and each step of it."""

    def __init__(self) -> None:
        self.parts: dict[str, tuple[int | None, list[int]]] = {}

    def begin(self, what: str, total: int | None = None) -> None:
        self.parts[what] = (total, [])

    def advance(self, steps: int = 1) -> None:
        *_, (_, done) = self.parts.values()
        done.append(steps)


def test_progress_is_that_of_rows(
    planted: Database, tmp_path: Path, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "BATCH", 10)
    counted, path = Counted(), str(tmp_path / "cloud.copy")
    monkeypatch.setattr(progress, "shown", lambda _: nullcontext(counted))
    url = planted.engine.url.render_as_string(hide_password=False)
    assert run(url, monkeypatch, "export", path) == 0
    assert run(empty_url, monkeypatch, "import", path) == 0
    rows = sum(isinstance(line, list) for line in lines_of(planted))
    for part in ("reading", "writing"):
        total, steps = counted.parts[part]
        assert total == sum(steps) == rows
        assert max(steps) <= 10


def peaks_of(database: Database, hosts: int, path: Path) -> tuple[int, int]:
    """Return how much memory the export and the import of a cloud take at most."""
    database.write(lambda connection: planting.plant(connection, hosts))
    tracemalloc.start()
    try:
        database.look(lambda connection: file.save(path, copying.read(connection)))
        _, exported = tracemalloc.get_traced_memory()
        empty(database)
        tracemalloc.reset_peak()
        database.write(lambda connection: copying.write(connection, file.load(path)))
        _, imported = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    empty(database)
    return exported, imported


def test_memory_does_not_grow_with_the_cloud(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "BATCH", 100)
    # The first one compiles statements.
    peaks_of(database, 5, tmp_path / "first")
    few = peaks_of(database, 20, tmp_path / "few")
    many = peaks_of(database, 160, tmp_path / "many")
    assert all(most - least < GROWTH for least, most in zip(few, many, strict=True))


# How a server says how many allocations it believes that there are.
BELIEVED = {
    "postgresql": "SELECT reltuples FROM pg_class WHERE relname = 'allocations'",
    "mysql": "SELECT n_rows FROM mysql.innodb_table_stats "
    "WHERE table_name = 'allocations' AND database_name = database()",
}


@pytest.mark.skipif(backends.KIND == "sqlite", reason="of servers")
def test_a_server_knows_at_once_how_much_was_imported(
    planted: Database, tmp_path: Path, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = lines_of(planted)
    file.save(tmp_path / "cloud.copy", lines)
    assert run(empty_url, monkeypatch, "import", str(tmp_path / "cloud.copy")) == 0
    believed = sa.text(BELIEVED[backends.KIND])
    filled = backends.connect(empty_url)
    number = filled.look(lambda connection: connection.scalar(believed))
    filled.engine.dispose()
    assert number == len(rows_of(lines)["allocations"]) > 0


def test_without_our_own_tables_the_shared_ones_are_copied(
    planted: Database, tmp_path: Path
) -> None:
    with planted.engine.begin() as connection:
        models.OWN.drop_all(connection)
    try:
        lines = lines_of(planted)
    finally:
        migration.SCHEMA.upgrade(planted)
    with embedded(tmp_path) as other:
        other.write(lambda connection: copying.write(connection, lines))
        assert rows_of(lines_of(other))["consumers"] == rows_of(lines)["consumers"]
        with other.engine.connect() as connection:
            stamps = sa.select(sa.func.count()).select_from(models.FOREST_STAMPS)
            assert connection.scalar(stamps) == 257

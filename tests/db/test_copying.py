"""Copies of a whole database: between kinds of databases, and damaged ones."""

import gzip
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from placement.cmd import copying as file
from placement.db import migration, models
from placement.demonstration import planting
from placement.objects import copying
from placement.objects.journal import recording
from placement_foundation.database.storage import Database
from tests import backends
from tests.client import Client

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


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


def rows_of(lines: list[Any]) -> dict[str, list[Any]]:
    """Return the rows of a copy by table, with numbers as every database has them."""
    found: dict[str, list[Any]] = {}
    for line in lines[1:]:
        if isinstance(line, dict):
            rows = found.setdefault(line["table"], [])
        else:
            rows.append([_rounded(value) for value in line])
    return found


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def empty(database: Database) -> None:
    database.write(backends.empty_placement)


def fleet(application: "WSGIApplication") -> Any:
    document = Client(application).get("/ledger/v1/fleet?fields=inventories,usages")
    return document["providers"]


def test_a_copy_goes_to_another_kind_of_database_and_back(
    planted: Database, tmp_path: Path
) -> None:
    before = lines_of(planted)
    assert len(before) > 500
    with embedded(tmp_path) as other:
        other.write(lambda connection: copying.write(connection, before))
        between = lines_of(other)
    assert rows_of(between) == rows_of(before)
    empty(planted)
    planted.write(lambda connection: copying.write(connection, between))
    assert rows_of(lines_of(planted)) == rows_of(before)


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

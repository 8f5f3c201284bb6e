"""Copies of a whole database: between kinds of databases, all of it or nothing."""

import functools
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from placement import app
from placement.cmd import manage
from placement.db import models
from placement.demonstration import planting
from placement.objects import copying
from placement.objects.ledger import Ledger
from placement_foundation.database.storage import Database
from tests import backends, settings
from tests.client import Client, new_uuid

# How many bytes more may be in memory if eight times as much is copied.
GROWTH = 500_000
# The databases that a copy goes to from the one that is tested.
OTHERS = {
    "sqlite": ["sqlite"],
    "postgresql": ["mysql", "sqlite"],
    "mysql": ["postgresql", "sqlite"],
}
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


@pytest.fixture
def planted(database: Database) -> Database:
    """A database with hosts, children, shared storage, consumers, custom names."""
    Ledger(database).write(lambda tx: planting.plant(tx, 12))
    return database


@pytest.fixture
def other() -> Iterator[Database]:
    with backends.embedded() as database:
        yield database


def url_of(database: Database) -> str:
    return database.engine.url.render_as_string(hide_password=False)


def everything(database: Database) -> list[Any]:
    """Return all that the service says of a database."""
    client = Client(app.build(settings.make_config(), database))
    return [client.get(path)[name] for path, names in LISTS.items() for name in names]


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
    assert answer.status == 200, answer
    [host] = answer.document["trees"]
    assert client.get(f"/ledger/v1/history?provider={host['uuid']}")["history"]
    consumer = new_uuid()
    client.claim(consumer, {host["uuid"]: {"VCPU": 1}})
    client.call("PUT", f"/ledger/v1/leases/{consumer}", {"seconds": 3600})
    audit = {"claims": 1, "living": 1, "not_judged": 0, "counts": {}, "findings": []}
    client.call("PUT", "/ledger/v1/audits/nova", audit)


@pytest.mark.parametrize("kind", OTHERS[backends.KIND])
def test_a_cloud_moves_to_another_kind_of_database_and_back(
    planted: Database,
    client: Client,
    tmp_path: Path,
    kind: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fill_our_own_tables(client)
    before = everything(planted)
    with backends.empty_database(tmp_path, kind) as url:
        assert manage.main(["copy", url_of(planted), url]) == 0
        assert capsys.readouterr().out.endswith(" rows were copied, and compared\n")
        moved = backends.connect(url)
        assert everything(moved) == before
        # It goes on counting where the copy ends.
        there = Client(app.build(settings.make_config(), moved))
        assert there.claim(new_uuid(), {there.make_provider(VCPU=1): {"VCPU": 1}})
        moved.engine.dispose()
        planted.write(backends.empty_placement)
        assert manage.main(["copy", url, url_of(planted)]) == 0
    assert client.get("/ledger/v1/fleet")["providers"]


def test_a_database_that_is_not_empty_is_left_alone(
    planted: Database, other: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    Ledger(other).write(lambda tx: planting.plant(tx, 1))
    before = other.look(backends.rows_of)
    assert manage.main(["copy", url_of(planted), url_of(other)]) == 1
    assert "The database is not empty" in capsys.readouterr().err
    assert other.look(backends.rows_of) == before


def test_a_database_that_is_not_there_is_not_made(
    other: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing.db"
    assert manage.main(["copy", f"sqlite:///{missing}", url_of(other)]) == 1
    assert "there is no database at" in capsys.readouterr().err
    assert not missing.exists()


def test_providers_may_refer_to_later_ones(planted: Database, other: Database) -> None:
    row = models.ResourceProvider
    with planted.engine.begin() as connection:
        ids = connection.scalars(sa.select(row.id).order_by(row.id)).all()
        later = {"parent_provider_id": ids[-1], "root_provider_id": ids[-1]}
        connection.execute(sa.update(row).where(row.id == ids[0]).values(later))
    backends.copy(planted, other)
    places = sa.select(row.id, row.parent_provider_id, row.root_provider_id)
    assert other.look(lambda connection: set(connection.execute(places))) == (
        planted.look(lambda connection: set(connection.execute(places)))
    )


def test_a_row_that_cannot_be_stored_is_named(
    planted: Database, other: Database
) -> None:
    row = models.ResourceProvider
    with other.engine.begin() as connection:
        # Such a column has one of a kind, and the cloud has two.
        connection.execute(
            sa.text("CREATE UNIQUE INDEX one ON resource_providers (generation)")
        )
    with pytest.raises(
        copying.NotCopied, match=r"row of resource_providers with id \d+"
    ):
        backends.copy(planted, other)
    with other.engine.connect() as connection:
        assert connection.execute(sa.select(row.id)).first() is None


def test_what_has_not_arrived_as_it_was_is_noticed(
    planted: Database, other: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = copying._insert

    def spoil(connection: sa.Connection, table: sa.Table, rows: list[Any]) -> None:
        if table.name == "inventories":
            rows = [{**rows[0], "total": rows[0]["total"] + 1}, *rows[1:]]
        insert(connection, table, rows)

    monkeypatch.setattr(copying, "_insert", spoil)
    with pytest.raises(copying.NotCopied, match="rows of inventories are not what"):
        backends.copy(planted, other)
    with other.engine.connect() as connection:
        assert connection.execute(sa.select(models.Inventory.id)).first() is None


@pytest.mark.lengthy
def test_memory_does_not_grow_with_the_cloud(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "BATCH", 100)
    peaks = []
    for hosts in (100, 800):
        database.write(backends.empty_placement)
        Ledger(database).write(functools.partial(planting.plant, hosts=hosts))
        with backends.embedded() as other:
            tracemalloc.start()
            backends.copy(database, other)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] - peaks[0] < GROWTH


def test_without_our_own_tables_the_shared_ones_are_copied(
    planted: Database, other: Database
) -> None:
    """OpenStack Placement knows of no others."""
    with backends.embedded() as plain:
        backends.copy(planted, plain)
        with plain.engine.begin() as connection:
            models.OWN.drop_all(connection)
        assert backends.copy(plain, other)

"""Standard traits and resource classes: added when missing, never touched again."""

import os_resource_classes
import os_traits
import pytest
import sqlalchemy as sa

from placement.db import migration, models
from placement.objects import standard_name
from placement.objects.ledger import Ledger
from placement.objects.transaction import Transaction
from placement_foundation.database import storage
from placement_foundation.database.storage import Database
from tests import backends
from tests.db import legacy


@pytest.fixture
def migrated(empty: Database) -> Database:
    migration.SCHEMA.upgrade(empty)
    return empty


def rows(database: Database, model: type[models.Base]) -> list[sa.Row[tuple[int]]]:
    table = sa.inspect(model).local_table
    query = sa.select(table).order_by(table.c.id)
    return database.read(lambda connection: list(connection.execute(query).all()))


def test_the_class_ids_are_the_places_in_the_library(migrated: Database) -> None:
    added = standard_name.synchronise(Ledger(migrated))
    classes = {
        row.id: (row.name, row.created_at is not None, row.updated_at)
        for row in rows(migrated, models.ResourceClass)
    }
    assert classes == {
        position: (name, True, None)
        for position, name in enumerate(os_resource_classes.STANDARDS)
    }
    assert classes[0][0] == "VCPU"
    assert set(added) > set(os_resource_classes.STANDARDS)
    assert standard_name.synchronise(Ledger(migrated)) == []


def test_all_traits_of_the_library_are_added(migrated: Database) -> None:
    added = standard_name.synchronise(Ledger(migrated))
    traits = rows(migrated, models.Trait)
    assert {row.name for row in traits} == set(os_traits.get_traits())
    assert all(row.created_at and row.updated_at is None for row in traits)
    assert set(added) > set(os_traits.get_traits())


def test_only_what_is_missing_is_added(migrated: Database) -> None:
    legacy.fill(migrated)
    before = {row.id: row for row in rows(migrated, models.ResourceClass)}
    traits_before = rows(migrated, models.Trait)
    added = standard_name.synchronise(Ledger(migrated))
    stored = {"HW_CPU_X86_AVX2", "MISC_SHARES_VIA_AGGREGATE"}
    missing = set(os_traits.get_traits()) - stored
    assert set(added) == missing.union(os_resource_classes.STANDARDS[18:])
    after = {row.id: row for row in rows(migrated, models.ResourceClass)}
    assert {key: after[key] for key in before} == before
    assert rows(migrated, models.Trait)[: len(traits_before)] == traits_before


def test_names_that_left_the_libraries_stay(
    migrated: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    standard_name.synchronise(Ledger(migrated))
    before = rows(migrated, models.ResourceClass), rows(migrated, models.Trait)
    monkeypatch.setattr(
        os_resource_classes, "STANDARDS", os_resource_classes.STANDARDS[:5]
    )
    monkeypatch.setattr(os_traits, "get_traits", lambda: ["HW_CPU_X86_AVX2"])
    assert standard_name.synchronise(Ledger(migrated)) == []
    after = rows(migrated, models.ResourceClass), rows(migrated, models.Trait)
    assert after == before


def test_a_class_whose_id_is_taken_is_left_out_and_reported(
    migrated: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with migrated.engine.begin() as connection:
        legacy.insert(
            connection, "resource_classes", {"id": 3, "name": "SOMETHING_ELSE"}
        )
    added = standard_name.synchronise(Ledger(migrated))
    others = set(os_resource_classes.STANDARDS) - {"PCI_DEVICE"}
    assert set(added) == others.union(os_traits.get_traits())
    assert "PCI_DEVICE" in caplog.text


@pytest.mark.skipif(backends.KIND == "sqlite", reason="SQLite has one writer at once")
def test_the_loser_of_a_race_adds_nothing(
    migrated: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = standard_name.list_missing_resource_classes
    looked: list[bool] = []

    def look_and_be_overtaken(connection: sa.Connection) -> list[str]:
        answer = missing(connection)
        if not looked:
            looked.append(True)
            standard_name.synchronise_resource_classes(Ledger(migrated))
        return answer

    monkeypatch.setattr(
        standard_name, "list_missing_resource_classes", look_and_be_overtaken
    )
    Ledger(migrated).write(standard_name.add_missing_resource_classes)
    names = [row.name for row in rows(migrated, models.ResourceClass)]
    assert names == os_resource_classes.STANDARDS


@pytest.mark.skipif(backends.KIND != "mysql", reason="of MySQL's own modes")
def test_the_sql_mode_is_as_before_even_after_a_failure(
    migrated: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> None:
        raise LookupError

    def mode(connection: sa.Connection) -> str:
        return str(connection.scalar(sa.text("SELECT @@SESSION.sql_mode")))

    before = migrated.write(mode)
    assert "NO_AUTO_VALUE_ON_ZERO" not in before
    monkeypatch.setattr(storage, "insert_missing", fail)

    def mode_after_failure(tx: Transaction) -> str:
        with pytest.raises(LookupError):
            standard_name.add_missing_resource_classes(tx)
        return mode(tx.connection)

    assert Ledger(migrated).write(mode_after_failure) == before
    monkeypatch.undo()
    standard_name.synchronise(Ledger(migrated))
    assert migrated.write(mode) == before

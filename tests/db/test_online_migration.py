"""Repairs of what older releases left out."""

import pytest
import sqlalchemy as sa

from placement.db import models
from placement.objects import online_migration
from placement.objects.ledger import Ledger
from placement_foundation.database.storage import Database
from tests.db import legacy

pytestmark = pytest.mark.damage

PROJECT, USER = "the project of nobody", "the user of nobody"


def create_consumers(database: Database, limit: int) -> int:
    return Ledger(database).write(
        lambda tx: online_migration.create_incomplete_consumers(
            tx, limit, project=PROJECT, user=USER
        )
    )


def set_roots(database: Database, limit: int) -> int:
    return Ledger(database).write(
        lambda tx: online_migration.set_root_provider_ids(tx, limit)
    )


@pytest.fixture
def rootless(database: Database) -> list[str]:
    """Write seven providers without a root, and return their names."""
    names = [f"old host {number}" for number in range(7)]
    with database.engine.begin() as connection:
        legacy.insert(
            connection,
            "resource_providers",
            *({"uuid": name, "name": name, "generation": 0} for name in names),
        )
    return names


@pytest.fixture
def orphans(database: Database) -> list[str]:
    """Write two allocations of each of seven consumers, and return the consumers."""
    uuids = [f"orphan {number}" for number in range(7)]
    with database.engine.begin() as connection:
        for uuid in uuids * 2:
            row = {"resource_provider_id": 1, "resource_class_id": 0, "used": 1}
            legacy.insert(connection, "allocations", {"consumer_id": uuid, **row})
    return uuids


def roots(database: Database) -> list[tuple[int, int | None]]:
    provider = models.ResourceProvider
    query = sa.select(provider.id, provider.root_provider_id).order_by(provider.id)
    return database.read(
        lambda connection: [(*row,) for row in connection.execute(query)]
    )


def consumers(database: Database) -> list[tuple[str, str, str, int, int | None]]:
    query = (
        sa.select(
            models.Consumer.uuid,
            models.Project.external_id,
            models.User.external_id,
            models.Consumer.generation,
            models.Consumer.consumer_type_id,
        )
        .join(models.Project, models.Project.id == models.Consumer.project_id)
        .join(models.User, models.User.id == models.Consumer.user_id)
        .order_by(models.Consumer.uuid)
    )
    return database.read(
        lambda connection: [(*row,) for row in connection.execute(query)]
    )


def test_roots_that_are_set_stay(database: Database, rootless: list[str]) -> None:
    provider = models.ResourceProvider
    with database.engine.begin() as connection:
        first = int(connection.scalar(sa.select(sa.func.min(provider.id))) or 0)
        connection.execute(
            sa.update(provider)
            .where(provider.id == first + 1)
            .values(root_provider_id=first)
        )
    assert set_roots(database, 50) == len(rootless) - 1
    assert roots(database)[1] == (first + 1, first)


def test_their_owners_are_recorded_though_there_are_none(database: Database) -> None:
    assert set_roots(database, 50) == 0
    assert create_consumers(database, 50) == create_consumers(database, 50) == 0
    assert consumers(database) == []
    with database.engine.connect() as connection:
        for model, name in ((models.Project, PROJECT), (models.User, USER)):
            names = connection.scalars(sa.select(model.external_id)).all()
            assert names.count(name) == 1


def test_consumers_that_are_recorded_stay(
    database: Database, orphans: list[str]
) -> None:
    create_consumers(database, 50)
    with database.engine.begin() as connection:
        legacy.execute(connection, "UPDATE consumers SET generation = 9")
    assert create_consumers(database, 50) == 0
    assert {consumer[3] for consumer in consumers(database)} == {9}

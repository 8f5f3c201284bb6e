"""Every kind of damage that is planted is found, and mended if there is one way to."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from placement.cmd import manage
from placement.db import models
from placement.demonstration import planting
from placement.objects import standard_name
from placement.objects.soundness import checking
from placement.objects.soundness.rule import RULES
from placement_foundation.database.storage import Database
from tests import backends
from tests.client import Client, new_uuid

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

pytestmark = pytest.mark.damage

Plant = Callable[[sa.Connection], None]
NOWHERE = 987_654


@pytest.fixture
def cloud(database: Database) -> Iterator[Database]:
    """A database with a cloud in which nothing is wrong."""
    database.write(lambda connection: planting.plant(connection, 12))
    database.write(add_child)
    yield database
    with unguarded(database) as connection:
        for table in (models.Allocation, models.Inventory):
            connection.execute(sa.delete(table))
        for pairs in (models.ResourceProviderTrait, models.ResourceProviderAggregate):
            connection.execute(sa.delete(pairs))
        connection.execute(sa.update(models.Consumer).values(consumer_type_id=None))
        providers = models.ResourceProvider
        connection.execute(
            sa.update(providers).values(root_provider_id=None, parent_provider_id=None)
        )
    standard_name.synchronise(database)


def add_child(connection: sa.Connection) -> None:
    """Put a provider below the first one."""
    root = first(connection, models.ResourceProvider)
    connection.execute(
        sa.insert(models.ResourceProvider).values(
            uuid=new_uuid(),
            name="child",
            generation=0,
            parent_provider_id=root,
            root_provider_id=root,
        )
    )


@contextmanager
def unguarded(database: Database) -> Iterator[sa.Connection]:
    """Yield a connection that does not check what rows refer to."""
    with database.engine.connect() as connection:
        kind = connection.dialect.name
        if kind == "sqlite":
            connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
        elif kind == "postgresql":
            connection.exec_driver_sql("SET session_replication_role = replica")
        else:
            connection.exec_driver_sql("SET foreign_key_checks = 0")
        yield connection
        connection.commit()
        connection.invalidate()


def found(database: Database) -> dict[str, checking.Finding]:
    return {
        each.rule.name: each
        for each in database.look(lambda connection: list(checking.check(connection)))
    }


def first(connection: sa.Connection, model: Any, **values: Any) -> Any:
    """Return the id of a row of a table."""
    query = sa.select(model.id).order_by(model.id)
    for name, value in values.items():
        query = query.where(getattr(model, name) == value)
    return connection.scalars(query).first()


def change(model: Any, **values: Any) -> Plant:
    """Return what changes one row of a table."""

    def plant(connection: sa.Connection) -> None:
        row = first(connection, model)
        connection.execute(sa.update(model).where(model.id == row).values(**values))

    return plant


def remove(model: Any, of: Any) -> Plant:
    """Return what removes the row that another one refers to."""

    def plant(connection: sa.Connection) -> None:
        key = connection.scalars(sa.select(of).order_by(of)).first()
        connection.execute(sa.delete(model).where(model.id == key))

    return plant


def add_consumer(connection: sa.Connection) -> None:
    owner = {
        "project_id": first(connection, models.Project),
        "user_id": first(connection, models.User),
    }
    connection.execute(
        sa.insert(models.Consumer).values(uuid=new_uuid(), generation=1, **owner)
    )


def add_pair(model: Any, **values: Any) -> Plant:
    return lambda connection: connection.execute(
        sa.insert(model).values(**values)
    ).close()


def nest(connection: sa.Connection) -> None:
    """Put a host below its own child."""
    providers = models.ResourceProvider
    child = connection.execute(
        sa.select(providers.id, providers.parent_provider_id)
        .where(providers.parent_provider_id.is_not(None))
        .order_by(providers.id)
    ).first()
    assert child
    connection.execute(
        sa.update(providers)
        .where(providers.id == child.parent_provider_id)
        .values(parent_provider_id=child.id)
    )


def misplace(connection: sa.Connection) -> None:
    """Give a child the root of another tree."""
    providers = models.ResourceProvider
    roots = list(
        connection.scalars(
            sa.select(providers.id)
            .where(providers.parent_provider_id.is_(None))
            .order_by(providers.id)
        )
    )
    child = connection.execute(
        sa.select(providers.id, providers.root_provider_id)
        .where(providers.parent_provider_id.is_not(None))
        .order_by(providers.id)
    ).first()
    assert child
    other = next(root for root in roots if root != child.root_provider_id)
    connection.execute(
        sa.update(providers)
        .where(providers.id == child.id)
        .values(root_provider_id=other)
    )


def end_lease(connection: sa.Connection) -> None:
    connection.execute(
        sa.insert(models.LEASES).values(consumer_id=NOWHERE, expires_at=1)
    )


def declare_nothing(connection: sa.Connection) -> None:
    connection.execute(
        sa.insert(models.DECLARATIONS).values(
            provider_uuid=new_uuid(), owner="fleet", document="{}"
        )
    )


def lose_stamps(connection: sa.Connection) -> None:
    connection.execute(
        sa.delete(models.FOREST_STAMPS).where(models.FOREST_STAMPS.c.shard > 200)
    )


DAMAGE: dict[str, tuple[Plant, bool]] = {
    "over-capacity": (change(models.Allocation, used=2_000_000_000), False),
    "odd-amount": (change(models.Allocation, used=2_000_000_000), False),
    "impossible-inventory": (change(models.Inventory, step_size=0, total=-1), False),
    "empty-allocation": (change(models.Allocation, used=0), False),
    "allocation-provider": (
        change(models.Allocation, resource_provider_id=NOWHERE),
        True,
    ),
    "allocation-class": (change(models.Allocation, resource_class_id=NOWHERE), True),
    "allocation-inventory": (
        lambda connection: connection.execute(sa.delete(models.Inventory)).close(),
        False,
    ),
    "allocation-consumer": (change(models.Allocation, consumer_id=new_uuid()), False),
    "consumer-allocations": (add_consumer, True),
    "consumer-owner": (change(models.Consumer, project_id=NOWHERE), False),
    "consumer-type": (change(models.Consumer, consumer_type_id=NOWHERE), False),
    "inventory-provider": (
        change(models.Inventory, resource_provider_id=NOWHERE),
        True,
    ),
    "inventory-class": (change(models.Inventory, resource_class_id=NOWHERE), True),
    "provider-trait": (
        remove(models.Trait, models.ResourceProviderTrait.trait_id),
        True,
    ),
    "trait-provider": (
        add_pair(
            models.ResourceProviderTrait, trait_id=1, resource_provider_id=NOWHERE
        ),
        True,
    ),
    "provider-aggregate": (
        remove(models.Aggregate, models.ResourceProviderAggregate.aggregate_id),
        True,
    ),
    "aggregate-provider": (
        add_pair(
            models.ResourceProviderAggregate,
            aggregate_id=1,
            resource_provider_id=NOWHERE,
        ),
        True,
    ),
    "provider-parent": (
        change(models.ResourceProvider, parent_provider_id=NOWHERE),
        False,
    ),
    "provider-root": (change(models.ResourceProvider, root_provider_id=NOWHERE), True),
    "provider-tree": (misplace, True),
    "provider-name": (change(models.ResourceProvider, name=None), False),
    "parent-circle": (nest, False),
    "lease": (end_lease, True),
    "declaration": (declare_nothing, True),
    "rows-of-forest_stamps": (lose_stamps, True),
}


def test_a_sound_cloud_has_nothing_to_find(cloud: Database) -> None:
    assert not found(cloud)


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found_and_mended_if_there_is_one_way_to(
    cloud: Database, name: str
) -> None:
    plant, can_be_mended = DAMAGE[name]
    with unguarded(cloud) as connection:
        plant(connection)
    findings = found(cloud)
    assert name in findings
    assert findings[name].count >= 1
    assert (findings[name].rule.repair is not None) == can_be_mended
    cloud.write(lambda connection: checking.repair(connection, list(findings.values())))
    assert (name in found(cloud)) == (not can_be_mended)


def test_every_rule_but_those_that_the_schema_forbids_is_tried() -> None:
    unique = {rule.name for rule in RULES if rule.name.endswith("-twice")}
    assert {rule.name for rule in RULES} <= DAMAGE.keys() | unique


def test_a_repair_never_changes_what_counts(cloud: Database) -> None:
    def used(connection: sa.Connection) -> list[Any]:
        known = sa.select(models.Inventory.id).where(
            models.Inventory.resource_provider_id
            == models.Allocation.resource_provider_id,
            models.Inventory.resource_class_id == models.Allocation.resource_class_id,
        )
        query = sa.select(models.Allocation.id, models.Allocation.used)
        rows = connection.execute(query.where(known.exists()).order_by("id"))
        return [tuple(row) for row in rows]

    with unguarded(cloud) as connection:
        for name in ("consumer-allocations", "allocation-class", "provider-root"):
            DAMAGE[name][0](connection)
    before = cloud.look(used)
    assert before
    findings = list(found(cloud).values())
    cloud.write(lambda connection: checking.repair(connection, findings))
    assert cloud.look(used) == before


def test_what_the_api_allows_is_a_notice(
    application: "WSGIApplication", database: Database
) -> None:
    client = Client(application)
    host = client.make_provider(VCPU=8)
    claimed = client.claim(str(uuid.uuid4()), {host: {"VCPU": 8}})
    assert claimed.status == 204
    inventory = {"total": 4, "max_unit": 4}
    shrunk = {
        "resource_provider_generation": client.generation(host),
        "inventories": {"VCPU": inventory},
    }
    path = f"/resource_providers/{host}/inventories"
    assert client.call("PUT", path, shrunk).status == 200
    assert {name: each.rule.damage for name, each in found(database).items()} == {
        "over-capacity": False,
        "odd-amount": False,
    }


@pytest.mark.skipif(backends.KIND != "sqlite", reason="of the command, not of SQL")
def test_the_command_reports_and_mends(
    cloud: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = cloud.engine.url.render_as_string(hide_password=False)
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", url)
    assert manage.main(["check"]) == 0
    with unguarded(cloud) as connection:
        add_consumer(connection)
    assert manage.main(["check"]) == 1
    assert "consumer-allocations (damage)" in capsys.readouterr().out
    assert manage.main(["check", "--json", "--repair", "--yes"]) == 0
    assert '"can_be_repaired": true' in capsys.readouterr().out
    assert manage.main(["check"]) == 0
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", "sqlite:////nowhere/x.db")
    assert manage.main(["check"]) == 2

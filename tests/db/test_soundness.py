"""Every kind of damage that is planted is found, and mended if there is one way to."""

import io
import json
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from placement.cmd import manage
from placement.cmd.checking import SHOWN
from placement.db import models
from placement.demonstration import planting
from placement.objects import standard_name
from placement.objects.journal import filing, keeping
from placement.objects.ledger import Ledger
from placement.objects.soundness import checking
from placement.objects.soundness.checking import Finding
from placement.objects.soundness.rule import RULES
from placement_foundation.database.storage import Database
from tests import backends, terminal
from tests.client import Client, new_uuid

pytestmark = pytest.mark.damage

Plant = Callable[[sa.Connection], None]
NOWHERE = 987_654
PROGRAM = Path(sys.executable).with_name("placement-manage")


@pytest.fixture
def cloud(database: Database) -> Iterator[Database]:
    """A database with a cloud in which nothing is wrong."""
    Ledger(database).write(lambda tx: planting.plant(tx, 12))
    database.write(add_child)
    filing.switch(database, on=True)
    yield database
    with unguarded(database) as connection:
        pairs = models.ResourceProviderTrait, models.ResourceProviderAggregate
        for table in (models.Allocation, models.Inventory, *pairs):
            connection.execute(sa.delete(table))
        connection.execute(sa.update(models.Consumer).values(consumer_type_id=None))
        providers = models.ResourceProvider
        connection.execute(
            sa.update(providers).values(root_provider_id=None, parent_provider_id=None)
        )
    standard_name.synchronise(Ledger(database))


@pytest.fixture
def managed(cloud: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``placement-manage`` find the database."""
    url = cloud.engine.url.render_as_string(hide_password=False)
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", url)


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


def found(database: Database) -> dict[str, Finding]:
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


def change_used_inventory(**values: Any) -> Plant:
    """Return what changes the inventory that the first allocation uses."""

    def plant(connection: sa.Connection) -> None:
        row = first(connection, models.Allocation)
        held = sa.select(
            models.Allocation.resource_provider_id, models.Allocation.resource_class_id
        ).where(models.Allocation.id == row)
        provider, resource_class = connection.execute(held).one()
        connection.execute(
            sa.update(models.Inventory)
            .where(
                models.Inventory.resource_provider_id == provider,
                models.Inventory.resource_class_id == resource_class,
            )
            .values(**values)
        )

    return plant


def allocate_twice(connection: sa.Connection) -> None:
    """Add a row that says again what the first allocation says."""
    columns = [
        column
        for column in models.Allocation.__table__.columns
        if column.name not in ("id", "created_at", "updated_at")
    ]
    row = first(connection, models.Allocation)
    again = sa.select(*columns).where(models.Allocation.id == row)
    connection.execute(sa.insert(models.Allocation).from_select(columns, again))


def lose_child_root(connection: sa.Connection) -> None:
    """Make a child its own root."""
    providers = models.ResourceProvider
    connection.execute(
        sa.update(providers)
        .where(providers.parent_provider_id.is_not(None))
        .values(root_provider_id=providers.id)
    )


def end_lease(connection: sa.Connection) -> None:
    connection.execute(
        sa.insert(models.LEASES).values(
            consumer_id=NOWHERE, consumer_uuid="x", expires_at=1
        )
    )


def declare_nothing(connection: sa.Connection) -> None:
    connection.execute(
        sa.insert(models.DECLARATIONS).values(
            provider_uuid=new_uuid(), owner="fleet", document="{}"
        )
    )


def spoil(table: sa.Table, column: str, value: Any) -> Plant:
    """Return what stores something that cannot be read."""

    def plant(connection: sa.Connection) -> None:
        rows = {
            each.name: value if each.name == column else _plain(each)
            for each in table.columns
            if not each.nullable
        }
        connection.execute(sa.insert(table).values(rows))

    return plant


def _plain(column: sa.Column[Any]) -> Any:
    if isinstance(column.type, sa.DateTime):
        return sa.func.now()
    if isinstance(column.type, sa.Integer):
        return NOWHERE
    if column.table is models.JOURNAL_ENTRIES and column.name == "id":
        return new_uuid()
    if column.name == "provider_uuid":
        return sa.select(sa.func.min(models.ResourceProvider.uuid)).scalar_subquery()
    return "x"


def lose_stamps(connection: sa.Connection) -> None:
    connection.execute(
        sa.delete(models.FOREST_STAMPS).where(models.FOREST_STAMPS.c.shard > 200)
    )


DAMAGE: dict[str, tuple[Plant, bool]] = {
    "over-capacity": (change(models.Allocation, used=2_000_000_000), False),
    "odd-amount": (change(models.Allocation, used=2_000_000_000), False),
    "impossible-inventory": (change(models.Inventory, step_size=0, total=-1), False),
    "negative-capacity": (change(models.Inventory, reserved=2_000_000_000), False),
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
    "allocation-twice": (allocate_twice, False),
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
    "provider-name": (change(models.ResourceProvider, name=None), False),
    "parent-circle": (nest, False),
    "lease": (end_lease, True),
    "declaration": (declare_nothing, True),
    "declaration-document": (spoil(models.DECLARATIONS, "document", "{"), False),
    "note-document": (spoil(models.NOTES, "document", "{"), False),
    "journal-waiting": (spoil(models.JOURNAL_INBOX, "entries", "{"), False),
    "journal-entry": (spoil(models.JOURNAL_ENTRIES, "document", "{"), False),
    "journal-hole": (spoil(models.JOURNAL_ENTRIES, "position", NOWHERE), False),
    "rows-of-forest_stamps": (lose_stamps, True),
}
# Other ways to break the same rules.
MORE: list[tuple[str, Plant]] = [
    ("over-capacity", change_used_inventory(total=0)),
    ("over-capacity", change_used_inventory(reserved=models.Inventory.total)),
    ("over-capacity", change_used_inventory(allocation_ratio=0.001)),
    ("odd-amount", change_used_inventory(min_unit=1_000_000)),
    ("odd-amount", change_used_inventory(max_unit=models.Inventory.min_unit - 1)),
    ("odd-amount", change_used_inventory(step_size=1_000_000)),
    *[
        ("impossible-inventory", change(models.Inventory, **{name: least - 1}))
        for name, least in {
            "total": 1,
            "reserved": 0,
            "min_unit": 1,
            "max_unit": 1,
            "step_size": 1,
        }.items()
    ],
    ("consumer-owner", change(models.Consumer, user_id=NOWHERE)),
    ("provider-root", change(models.ResourceProvider, root_provider_id=None)),
    ("provider-root", misplace),
    ("provider-root", lose_child_root),
    (
        "provider-root",
        change(
            models.ResourceProvider,
            root_provider_id=models.ResourceProvider.root_provider_id + 1,
        ),
    ),
    ("provider-name", change(models.ResourceProvider, generation=None)),
    (
        "parent-circle",
        change(models.ResourceProvider, parent_provider_id=models.ResourceProvider.id),
    ),
]
PLANTED = [(name, plant) for name, (plant, _) in DAMAGE.items()] + MORE


def test_a_sound_cloud_has_nothing_to_find(cloud: Database) -> None:
    assert not found(cloud)


def what_counts(connection: sa.Connection) -> list[Any]:
    """Return the allocations of what exists."""
    held = models.Allocation
    query = (
        sa.select(held.__table__)
        .join(
            models.ResourceProvider,
            models.ResourceProvider.id == held.resource_provider_id,
        )
        .join(models.ResourceClass, models.ResourceClass.id == held.resource_class_id)
        .order_by(held.id)
    )
    return list(connection.execute(query))


def count_gaps(connection: sa.Connection) -> int:
    """Return how often readers of the journal are told that they know too little."""
    inbox = models.JOURNAL_INBOX.c.entries
    entries = connection.scalars(sa.select(inbox).order_by(models.JOURNAL_INBOX.c.id))
    return sum('"journal.gap"' in each for each in entries)


@pytest.mark.parametrize(
    ("name", "plant"),
    PLANTED,
    ids=[f"{name}-{number}" for number, (name, _) in enumerate(PLANTED)],
)
def test_damage_is_found_and_mended_if_there_is_one_way_to(
    cloud: Database, name: str, plant: Plant
) -> None:
    can_be_mended = DAMAGE[name][1]
    with unguarded(cloud) as connection:
        plant(connection)
    findings = found(cloud)
    assert name in findings
    assert findings[name].count >= len(findings[name].rows) >= 1
    assert findings[name].rule.can_be_repaired == can_be_mended
    counting, gaps = cloud.look(what_counts), cloud.look(count_gaps)
    assert counting
    mended = Ledger(cloud, keeping.Keeper(cloud, days=1)).write(
        lambda tx: checking.repair(tx, 1000)
    )
    assert (name in found(cloud)) == (not can_be_mended)
    assert cloud.look(what_counts) == counting
    assert cloud.look(count_gaps) == gaps + bool(mended)


def test_every_rule_is_tried() -> None:
    assert {rule.name for rule in RULES} == {*DAMAGE, "sequence"}


@pytest.mark.parametrize(
    ("values", "is_noted"),
    [
        ({"allocation_ratio": 0.0}, False),
        ({"reserved": 8}, False),
        ({"allocation_ratio": -0.1}, False),
        ({"reserved": 9}, True),
    ],
)
def test_an_inventory_of_which_nothing_can_be_had_is_no_damage(
    client: Client,
    database: Database,
    values: dict[str, Any],
    is_noted: bool,
) -> None:
    host = client.make_provider(VCPU=8)
    inventories = {
        "resource_provider_generation": client.generation(host),
        "inventories": {"VCPU": {"total": 8, **values}},
    }
    # It accepts more than the other requests do.
    body = {"inventories": {host: inventories}, "allocations": {}}
    assert client.call("POST", "/reshaper", body).status == 204
    assert set(found(database)) == ({"negative-capacity"} if is_noted else set())


def test_what_a_repair_leaves_with_nothing_is_mended_too(
    cloud: Database, client: Client
) -> None:
    client, consumer = client, new_uuid()
    host = client.make_provider(VCPU=8)
    client.claim(consumer, {host: {"VCPU": 1}})
    lease = client.call("PUT", f"/ledger/v1/leases/{consumer}", {"seconds": 3600})
    assert lease.status == 200
    gone = models.Allocation.consumer_id == consumer
    with unguarded(cloud) as connection:
        held = sa.update(models.Allocation).where(gone)
        connection.execute(held.values(resource_provider_id=NOWHERE))
    assert Ledger(cloud).write(checking.repair) == {
        "allocation-provider": 1,
        "consumer-allocations": 1,
        "lease": 1,
    }
    assert not found(cloud)


@pytest.mark.usefixtures("managed")
def test_another_root_is_in_the_journal(cloud: Database, client: Client) -> None:
    with unguarded(cloud) as connection:
        misplace(connection)
    [row] = found(cloud)["provider-root"].rows
    assert manage.main(["check", "--repair", "--yes"]) == 0
    history = client.get(f"/ledger/v1/history?provider={row['uuid']}")["history"]
    [entry] = [each for each in history if each["type"] == "provider.updated"]
    provider = client.get(f"/resource_providers/{row['uuid']}")
    assert entry["before"]["root"] == row["root"]
    assert entry["after"]["root"] == provider["root_provider_uuid"]
    assert entry["request"] == "placement-manage check"


def chain(connection: sa.Connection, length: int) -> list[int]:
    """Add providers, each below the one before; return their ids."""
    providers, ids = models.ResourceProvider, list[int]()
    for _ in range(length):
        row = {"uuid": new_uuid(), "name": new_uuid(), "generation": 0}
        above = (
            {"parent_provider_id": ids[-1], "root_provider_id": ids[0]} if ids else {}
        )
        added = sa.insert(providers).values(**row, **above)
        connection.execute(added)
        ids.append(first(connection, providers, uuid=row["uuid"]))
    top = sa.update(providers).where(providers.id == ids[0])
    connection.execute(top.values(root_provider_id=ids[0]))
    return ids


def test_what_is_below_a_circle_is_not_in_it(cloud: Database) -> None:
    with unguarded(cloud) as connection:
        ids = chain(connection, 5)
        providers = models.ResourceProvider
        top = sa.update(providers).where(providers.id == ids[0])
        connection.execute(top.values(parent_provider_id=ids[2]))
    assert found(cloud)["parent-circle"].count == 3


def test_what_the_api_allows_is_a_notice(client: Client, database: Database) -> None:
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
@pytest.mark.usefixtures("managed")
def test_the_command_reports_and_mends(
    cloud: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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


@pytest.mark.skipif(backends.KIND != "sqlite", reason="of the command, not of SQL")
def test_a_database_that_is_not_there_is_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "missing.db"
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", f"sqlite:///{missing}")
    for more in ((), ("--json",), ("--repair", "--yes")):
        assert manage.main(["check", *more]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err == f"placement-manage: there is no database at {missing}\n"
    assert list(tmp_path.iterdir()) == []
    # These are not of files that could be missing.
    for url in ("sqlite://", f"sqlite:///file:{missing}?mode=memory&uri=true"):
        monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", url)
        assert manage.main(["check"]) == 2
        assert "no such table" in capsys.readouterr().err


@pytest.mark.usefixtures("managed")
def test_a_name_cannot_command_a_terminal(
    cloud: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    with unguarded(cloud) as connection:
        connection.execute(sa.update(models.Allocation).values(used=2_000_000_000))
        for number, provider in enumerate(
            connection.scalars(sa.select(models.ResourceProvider.id)).all()
        ):
            row = sa.update(models.ResourceProvider).filter_by(id=provider)
            connection.execute(row.values(name=f"a\x1b]0;b\x07{number}"))
    manage.main(["check"])
    shown = capsys.readouterr().out
    assert r"provider a\x1b]0;b\x07" in shown
    assert shown.replace("\n", "").isprintable()


@pytest.mark.usefixtures("managed")
def test_people_are_shown_the_first_rows_and_programs_all(
    cloud: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    with unguarded(cloud) as connection:
        for _ in range(SHOWN + 5):
            add_consumer(connection)
    assert manage.main(["check"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(f": {SHOWN + 5}")
    assert len(lines) == SHOWN + 2
    assert lines[-1].strip() == "and 5 more: --json lists all"
    assert manage.main(["check", "--json"]) == 1
    [finding] = json.loads(capsys.readouterr().out)
    assert finding["count"] == SHOWN + 5
    assert len({row["consumer"] for row in finding["rows"]}) == SHOWN + 5
    count = str(SHOWN + 5)
    assert manage.main(["check", "--repair", "--yes"]) == 1
    refusal = capsys.readouterr().err
    assert f"{count} rows would be removed" in refusal
    assert f"add --remove {count}" in refusal
    assert found(cloud)["consumer-allocations"].count == SHOWN + 5
    assert manage.main(["check", "--repair", "--yes", "--remove", "3"]) == 1
    assert manage.main(["check", "--repair", "--yes", "--remove", count]) == 0


@pytest.mark.usefixtures("managed")
def test_an_allocation_of_a_consumer_that_keeps_others_is_removed_by_number_only(
    cloud: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    with unguarded(cloud) as connection:
        allocation = first(connection, models.Allocation)
        held = models.Allocation.__table__.alias().c
        uses = sa.select(held.consumer_id).where(held.id == allocation)
        row = sa.select(models.Allocation.id).where(
            models.Allocation.consumer_id.in_(uses)
        )
        assert len(connection.execute(row).all()) > 1
        change(models.Allocation, resource_class_id=NOWHERE)(connection)
    assert manage.main(["check", "--repair", "--yes"]) == 1
    refusal = capsys.readouterr().err
    assert "1 rows would be removed, 1 of them allocations of consumers that" in refusal
    assert "allocation-class" in found(cloud)
    assert manage.main(["check", "--repair", "--yes", "--remove", "1"]) == 0


@pytest.mark.usefixtures("managed")
def test_standard_classes_need_not_be_stored(
    cloud: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    with unguarded(cloud) as connection:
        connection.execute(
            sa.delete(models.ResourceClass).where(models.ResourceClass.id < 100)
        )
    before = cloud.look(backends.rows_of)
    assert manage.main(["check", "--repair", "--yes"]) == 0
    assert cloud.look(backends.rows_of) == before
    with unguarded(cloud) as connection:
        change(models.Allocation, used=2_000_000_000)(connection)
    assert manage.main(["check"]) == 1
    assert "class VCPU" in capsys.readouterr().out


def test_a_hole_in_the_journal_is_found(cloud: Database, client: Client) -> None:
    for _ in range(4):
        client.make_provider(VCPU=8)
    client.get("/ledger/v1/changes?since=oldest")
    entries = models.JOURNAL_ENTRIES.c
    for position in (sa.func.min(entries.position) + 2, sa.func.max(entries.position)):
        with unguarded(cloud) as connection:
            assert "journal-hole" not in found(cloud)
            place = connection.execute(
                sa.select(position).select_from(models.JOURNAL_ENTRIES)
            ).scalar_one()
            kept = connection.execute(
                sa.select(models.JOURNAL_ENTRIES).where(entries.position == place)
            ).one()
            connection.execute(
                sa.delete(models.JOURNAL_ENTRIES).where(entries.position == place)
            )
        assert found(cloud)["journal-hole"].rows == [{"before_position": place + 1}]
        with unguarded(cloud) as connection:
            connection.execute(sa.insert(models.JOURNAL_ENTRIES), kept._asdict())


@pytest.mark.skipif(backends.KIND != "postgresql", reason="others count from the rows")
@pytest.mark.usefixtures("managed")
def test_a_sequence_that_is_behind_is_found_and_mended(
    cloud: Database, client: Client
) -> None:
    host = client.make_provider(VCPU=8)
    behind = [
        table
        for table in models.Base.metadata.sorted_tables
        if table.name in ("projects", "allocations", "resource_providers")
    ]

    def put_back() -> None:
        with cloud.engine.begin() as connection:
            for table in behind:
                draw = f"ALTER SEQUENCE {table.name}_id_seq RESTART WITH 1"
                connection.exec_driver_sql(draw)

    put_back()
    assert found(cloud)["sequence"].rows == [{"table": each.name} for each in behind]
    assert manage.main(["check", "--repair", "--yes"]) == 0
    put_back()
    # Without a repair, nothing is refused.
    claimed = client.claim(new_uuid(), {host: {"VCPU": 1}}, project=new_uuid())
    assert claimed.status == 204, claimed
    client.make_provider(VCPU=8)


@pytest.mark.skipif(backends.KIND != "sqlite", reason="of the command, not of SQL")
@pytest.mark.usefixtures("managed")
def test_nothing_is_mended_before_a_person_has_agreed(
    cloud: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with unguarded(cloud) as connection:
        add_consumer(connection)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert manage.main(["check", "--repair"]) == 2
    assert "no terminal to confirm on: add --yes" in capsys.readouterr().err
    for reply, status in ((b"\n", 1), (b"y\n", 0)):
        assert found(cloud)
        told, printed = terminal.run([PROGRAM, "check", "--repair"], reply)
        assert told == status
        assert "Mend what can be mended? [y/N]" in printed
    assert not found(cloud)

"""The demonstration cloud: planted into an empty database, seen, and taken away."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from placement import errors
from placement.cmd import manage
from placement.db import models
from placement.demonstration import cloud, planting
from placement.objects.ledger import Ledger
from placement.objects.soundness import checking
from placement_foundation.database.storage import Database
from tests.client import Client, new_uuid

# One rack of each kind.
HOSTS = len(cloud.KINDS) * cloud.HOSTS_IN_A_RACK


def plant(database: Database, hosts: int) -> int:
    return Ledger(database).write(lambda tx: planting.plant(tx, hosts))


def remove(database: Database) -> int:
    return Ledger(database).write(planting.remove)


def numbers(database: Database) -> dict[str, int]:
    """Count the rows of all tables but one: names of types stay known."""
    kept = models.ConsumerType.__tablename__
    with database.engine.connect() as connection:
        return {
            name: connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0
            for name, table in models.Base.metadata.tables.items()
            if name != kept and sa.inspect(connection).has_table(name)
        }


def test_the_cloud_is_what_a_service_sees(client: Client, database: Database) -> None:
    assert client.get("/resource_providers")["resource_providers"] == []
    planted = plant(database, HOSTS)
    providers = client.get("/resource_providers")["resource_providers"]
    assert len(providers) == planted
    assert all(each["name"].startswith("demo-") for each in providers)
    roots = {each["root_provider_uuid"] for each in providers}
    assert len(roots) == HOSTS + cloud.ZONES
    for query in (
        "resources=VCPU:1,MEMORY_MB:1024,DISK_GB:10",
        "resources1=PCPU:1&resources2=SRIOV_NET_VF:1&group_policy=none"
        "&same_subtree=1,2",
        "resources=VCPU:1&resources1=PGPU:1",
    ):
        found = client.get(f"/allocation_candidates?{query}&limit=5")
        assert len(found["allocation_requests"]) == 5, query


def test_the_cloud_is_the_same_each_time_and_nothing_in_it_is_overfull() -> None:
    parts = list(cloud.make(HOSTS))
    assert parts == list(cloud.make(HOSTS))
    inventories = {
        each.name: each.inventories for part in parts for each in part.providers
    }
    used: dict[tuple[str, str], int] = {}
    for part in parts:
        for consumer in part.consumers:
            for provider, amounts in consumer.claims.items():
                for name, amount in amounts.items():
                    key = (provider, name)
                    used[key] = used.get(key, 0) + amount
    for (provider, name), amount in used.items():
        assert amount <= inventories[provider][name].capacity
    # Some are busy, and some have room.
    shares = [
        amount / inventories[provider][name].total
        for (provider, name), amount in used.items()
        if name == "MEMORY_MB"
    ]
    assert min(shares) < 0.3
    assert max(shares) > 0.8


def test_only_an_empty_database_is_filled(client: Client, database: Database) -> None:
    own = client.make_provider(VCPU=4)
    before = numbers(database)
    with pytest.raises(errors.Conflict, match="empty"):
        plant(database, 3)
    assert numbers(database) == before
    assert client.usages(own) == {"VCPU": 0}


def test_all_of_it_goes_and_nothing_else(client: Client, database: Database) -> None:
    before = numbers(database)
    planted = plant(database, HOSTS)
    assert remove(database) == planted
    assert numbers(database) == before
    # And it can be planted again.
    assert plant(database, HOSTS) == planted
    own = client.make_provider(VCPU=4)
    named_alike = {"uuid": new_uuid(), "name": "demo-mine"}
    assert client.call("POST", "/resource_providers", named_alike).status == 200
    storage_uuid = cloud.uuid_of("demo-storage-0")
    consumer, other = new_uuid(), new_uuid()
    both = {own: {"VCPU": 1}, storage_uuid: {"DISK_GB": 1}}
    assert client.claim(consumer, both).status == 204
    assert client.claim(other, {storage_uuid: {"DISK_GB": 1}}).status == 204
    assert remove(database) == planted
    left = client.get("/resource_providers")["resource_providers"]
    assert {each["name"] for each in left} == {own, "demo-mine"}
    assert client.get(f"/allocations/{consumer}")["allocations"].keys() == {own}
    assert client.get(f"/allocations/{other}")["allocations"] == {}
    after = numbers(database)
    assert after["consumers"] == after["allocations"] == 1


def test_a_stranger_below_it_keeps_it(client: Client, database: Database) -> None:
    plant(database, 3)
    before = numbers(database)
    [parent] = [
        each["uuid"]
        for each in client.get("/resource_providers?name=demo-storage-0")[
            "resource_providers"
        ]
    ]
    body = {"uuid": new_uuid(), "name": "mine", "parent_provider_uuid": parent}
    assert client.call("POST", "/resource_providers", body).status == 200
    with pytest.raises(errors.Conflict, match="mine"):
        remove(database)
    after = numbers(database)
    assert after["resource_providers"] == before["resource_providers"] + 1
    assert after["allocations"] == before["allocations"]


@pytest.fixture
def embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a machine without any configuration; return where its data will be."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("OS_PLACEMENT_DATABASE__CONNECTION", raising=False)
    return tmp_path / "data" / "placement" / "placement.db"


def test_the_command_fills_the_database_that_the_service_brings(
    embedded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert manage.main(["demo", "--hosts", "2"]) == 0
    assert embedded.exists()
    assert capsys.readouterr().out == "2 hosts, 5 providers in all\n"
    assert manage.main(["demo", "--hosts", "2"]) == 1
    assert "empty" in capsys.readouterr().err
    assert manage.main(["demo", "--remove"]) == 0
    assert "5 providers" in capsys.readouterr().out
    assert manage.main(["demo", "--remove"]) == 0
    assert "0 providers" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [[], ["--hosts", "0"], ["--hosts", "many"], ["--hosts", "100001"]]
)
def test_the_command_needs_an_action(
    embedded: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        manage.main(["demo", *arguments])
    assert refused.value.code == 2
    is_number = not arguments or arguments[1].isdigit()
    assert is_number or "is not a number between 1 and" in capsys.readouterr().err
    assert not embedded.exists()


def test_the_command_uses_the_database_that_is_configured(
    embedded: Path,
    empty_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", empty_url)
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__MAX_RETRIES", "1")
    assert manage.main(["demo", "--hosts", "2"]) == 1
    assert "placement-manage db sync" in capsys.readouterr().err
    assert manage.main(["db", "sync"]) == 0
    assert manage.main(["demo", "--hosts", "2"]) == 0
    assert manage.main(["demo", "--remove"]) == 0
    assert not embedded.exists()


def test_other_commands_need_a_configured_database(
    embedded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert manage.main(["db", "version"]) == 1
    assert "connection" in capsys.readouterr().err
    assert not embedded.exists()


def test_leases_and_declarations_go_with_it(client: Client, database: Database) -> None:
    plant(database, 3)
    storage_uuid, consumer = cloud.uuid_of("demo-storage-0"), new_uuid()
    assert client.claim(consumer, {storage_uuid: {"DISK_GB": 1}}).status == 204
    body = {"trees": [{"name": "demo-storage-0", "traits": ["CUSTOM_MINE"]}]}
    assert client.call("POST", "/ledger/v1/apply", body).status == 200
    path = f"/ledger/v1/leases/{consumer}"
    assert client.call("PUT", path, {"seconds": 600}).status == 200
    remove(database)
    found = database.read(lambda connection: list(checking.check(connection)))
    assert found == []

"""What databases make of names, and what they may contain that is not ours."""

from typing import Any

import pytest
import sqlalchemy as sa

from placement import app
from placement.db import models
from placement_foundation.database.storage import Database
from tests import backends, settings
from tests.client import Client, new_uuid, wants

PROVIDERS = "/resource_providers"

# MariaDB's unique keys take two spellings for one, as its default is.
LAX = backends.KIND == "mysql"
# SQLite keeps texts of any length in any column.
ROOMY = backends.KIND == "sqlite"


def execute(database: Database, statement: Any) -> None:
    database.write(lambda connection: connection.execute(statement) and None)


@pytest.mark.parametrize("other", ["NODE", "node ", "nöde"])
def test_a_name_is_another_one_in_another_spelling(client: Client, other: str) -> None:
    assert client.call("POST", PROVIDERS, {"name": "node"}).status == 200
    assert client.call("GET", f"{PROVIDERS}?name=node").document["resource_providers"]
    path = f"{PROVIDERS}?name={other}".replace(" ", "%20").replace("ö", "%C3%B6")
    assert client.get(path)["resource_providers"] == []
    answer = client.call("POST", PROVIDERS, {"name": other})
    assert answer.status == (409 if LAX else 200)
    if LAX:
        assert answer.code == "placement.duplicate_name"
        assert f"resource provider name: {other} already exists." in answer.detail


def test_a_provider_may_be_renamed_to_another_spelling(client: Client) -> None:
    provider = client.make_provider()
    for name in ("node", "NODE"):
        answer = client.call("PUT", f"{PROVIDERS}/{provider}", {"name": name})
        assert answer.status == 200
        assert client.get(f"{PROVIDERS}/{provider}")["name"] == name


def test_a_uuid_is_not_found_in_capitals(client: Client) -> None:
    provider = "abcdef00-aaaa-4bbb-8ccc-0123456789ab"
    body = {"name": "node", "uuid": provider}
    assert client.call("POST", PROVIDERS, body).status == 200
    capitals = provider.upper()
    for method, suffix in [
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/inventories"),
        ("DELETE", "/inventories"),
        ("GET", "/traits"),
        ("GET", "/aggregates"),
        ("GET", "/usages"),
    ]:
        answer = client.call(method, f"{PROVIDERS}/{capitals}{suffix}")
        assert answer.status == 404
    for name in ("uuid", "in_tree"):
        found = client.get(f"{PROVIDERS}?{name}={capitals}")
        assert found["resource_providers"] == []
    child = {"name": "child", "parent_provider_uuid": capitals}
    answer = client.call("POST", PROVIDERS, child)
    assert answer.status == 400
    assert "parent provider UUID does not exist." in answer.detail


def test_an_aggregate_is_another_one_in_another_spelling(client: Client) -> None:
    spellings = [
        "abcdef00-aaaa-4bbb-8ccc-0123456789ab",
        "ABCDEF00-AAAA-4BBB-8CCC-0123456789AB",
    ]
    providers = [client.make_provider() for _ in spellings]
    put = [
        client.call(
            "PUT",
            f"{PROVIDERS}/{provider}/aggregates",
            {"resource_provider_generation": 1, "aggregates": [spelling]},
        )
        for provider, spelling in zip(providers, spellings, strict=True)
    ]
    assert [answer.status for answer in put] == [200, 409 if LAX else 200]
    if LAX:
        assert "in another spelling of its UUID" in put[1].detail
    found = client.get(f"{PROVIDERS}?member_of={spellings[0]}")["resource_providers"]
    assert [provider["uuid"] for provider in found] == providers[:1]
    found = client.get(f"{PROVIDERS}?member_of={spellings[1]}")["resource_providers"]
    assert [provider["uuid"] for provider in found] == ([] if LAX else providers[1:])


@pytest.mark.parametrize("spelling", ["urn:uuid:{}", "{{{}}}", "----------{}"])
def test_an_aggregate_is_kept_as_it_is_spelled_where_there_is_room(
    client: Client, spelling: str
) -> None:
    provider, aggregate = client.make_provider(), spelling.format(new_uuid())
    body = {"aggregates": [aggregate], "resource_provider_generation": 1}
    path = f"{PROVIDERS}/{provider}/aggregates"
    answer = client.call("PUT", path, body)
    assert answer.status == (200 if ROOMY else 400)
    assert client.get(path)["aggregates"] == ([aggregate] if ROOMY else [])
    members = client.get(f"{PROVIDERS}?member_of={aggregate}")["resource_providers"]
    assert len(members) == (1 if ROOMY else 0)


def test_classes_and_traits_are_found_letter_by_letter(client: Client) -> None:
    provider = client.make_provider(VCPU=1)
    for path in (
        "/resource_classes/vcpu",
        "/resource_classes/VCPU%20",
        "/traits/hw_numa_root",
        "/traits/HW_NUMA_ROOT%20",
        f"{PROVIDERS}/{provider}/inventories/vcpu",
    ):
        assert client.call("GET", path).status == 404
    body: Any = {"resource_provider_generation": 1, "traits": ["hw_numa_root"]}
    answer = client.call("PUT", f"{PROVIDERS}/{provider}/traits", body)
    assert answer.status == 400
    body = {"resource_provider_generation": 1, "total": 1}
    answer = client.call("PUT", f"{PROVIDERS}/{provider}/inventories/vcpu", body)
    assert answer.status == 404
    assert client.get("/traits?name=in:hw_numa_root") == {"traits": []}
    assert client.get("/traits?name=startswith:hw_numa") == {"traits": []}


def test_projects_and_users_are_found_letter_by_letter(client: Client) -> None:
    provider = client.make_provider(VCPU=1)
    claimed = client.claim(
        new_uuid(), {provider: {"VCPU": 1}}, project="blue", user="ann"
    )
    assert claimed.status == 204
    assert client.get("/usages?project_id=blue&user_id=ann")["usages"]
    for query in (
        "project_id=BLUE",
        "project_id=blue%20",
        "project_id=blue&user_id=Ann",
    ):
        assert client.get(f"/usages?{query}") == {"usages": {}}


# Other databases than SQLite let no reference dangle.
@pytest.mark.damage
@pytest.mark.parametrize("root", [None, 12345] if backends.KIND == "sqlite" else [None])
def test_a_provider_without_a_root_is_not_found(
    client: Client, database: Database, root: int | None
) -> None:
    hidden, child = new_uuid(), client.make_provider()
    row = {"uuid": hidden, "name": hidden, "generation": 0, "root_provider_id": root}
    execute(database, sa.insert(models.ResourceProvider).values(row))
    assert client.call("GET", f"{PROVIDERS}/{hidden}").status == 404
    assert client.call("DELETE", f"{PROVIDERS}/{hidden}").status == 404
    listed = client.get(PROVIDERS)["resource_providers"]
    assert [provider["uuid"] for provider in listed] == [child]
    body = {"name": child, "parent_provider_uuid": hidden}
    answer = client.call("PUT", f"{PROVIDERS}/{child}", body)
    assert answer.status == 400
    assert "parent provider UUID does not exist." in answer.detail
    body = {"name": "new", "parent_provider_uuid": hidden}
    assert client.call("POST", PROVIDERS, body).status == 400


# The column may be empty, but no service leaves it so.
@pytest.mark.damage
def test_a_provider_without_a_generation_is_as_good_as_one_with_0(
    database: Database,
) -> None:
    # Where the cloud is kept, what SQL changes is seen some seconds later.
    config = settings.make_config({("placement", "keep_forest"): False})
    client = Client(app.build(config, database))
    provider, other = client.make_provider(VCPU=8), client.make_provider(VCPU=8)
    moving, path = new_uuid(), f"{PROVIDERS}/{provider}"
    assert client.claim(moving, {provider: {"VCPU": 1}}).status == 204
    fields = {"name": "renamed"}
    inventory = {"resource_class": "DISK_GB", "total": 1}
    traits = {"traits": ["HW_NUMA_ROOT"], "resource_provider_generation": 0}
    claimed = wants({provider: {"VCPU": 1}})
    two = {new_uuid(): wants({each: {"VCPU": 1}}) for each in (provider, other)}
    moved = wants({other: {"VCPU": 1}}, generation=1)
    placed = {
        "query": f"resources=VCPU:1&in_tree={provider}",
        "consumers": [new_uuid()],
        **{name: claimed[name] for name in ("project_id", "user_id", "consumer_type")},
    }
    for method, where, body, version, status, generation in (
        ("PUT", path, fields, "1.39", 200, 0),
        ("PUT", f"{path}/aggregates", [new_uuid()], "1.18", 200, 0),
        ("POST", f"{path}/inventories", inventory, "1.39", 201, 1),
        ("PUT", f"{path}/traits", traits, "1.39", 200, 1),
        ("PUT", f"/allocations/{new_uuid()}", claimed, "1.39", 204, 1),
        ("POST", "/allocations", two, "1.39", 204, 1),
        ("POST", "/ledger/v1/placements", placed, "1.39", 201, 1),
        ("PUT", f"/allocations/{moving}", moved, "1.39", 204, 0),
    ):
        execute(
            database,
            sa.update(models.ResourceProvider)
            .where(models.ResourceProvider.uuid == provider)
            .values(generation=None),
        )
        # A client has to send it again, and may send numbers only.
        assert client.get(path)["generation"] == 0
        for of_it in ("inventories", "traits", "aggregates", "usages", "allocations"):
            found = client.get(f"{path}/{of_it}")["resource_provider_generation"]
            assert found == 0, of_it
        answer = client.call(method, where, body, version)
        assert answer.status == status, (method, where, answer)
        assert client.get(path)["generation"] == generation, (method, where)


# As OpenStack Placement may leave it, until "db online_data_migrations" repairs it.
@pytest.mark.damage
@pytest.mark.parametrize("way", ["delete", "empty", "move"])
def test_allocations_may_leave_a_provider_without_a_root(
    way: str, client: Client, database: Database
) -> None:
    provider, other = client.make_provider(VCPU=8), client.make_provider(VCPU=8)
    consumer = new_uuid()
    claimed = {provider: {"VCPU": 1}, other: {"VCPU": 1}}
    assert client.claim(consumer, claimed).status == 204
    execute(
        database,
        sa.update(models.ResourceProvider)
        .where(models.ResourceProvider.uuid == provider)
        .values(root_provider_id=None),
    )
    path = f"/allocations/{consumer}"
    if way == "delete":
        answer = client.call("DELETE", path)
    else:
        amounts = {other: {"VCPU": 2}} if way == "move" else {}
        answer = client.claim(consumer, amounts, generation=1)
    assert answer.status == 204, answer
    left = client.get(path)["allocations"]
    assert set(left) == ({other} if way == "move" else set())
    [entry] = client.get(f"/ledger/v1/history?consumer={consumer}&limit=1")["history"]
    assert entry["type"] == "allocations.changed"
    assert entry["names"] == {other: other}
    assert entry["before"].keys() == {provider, other}


def test_rows_without_times_are_as_good_as_others(
    client: Client, database: Database
) -> None:
    provider = client.make_provider(VCPU=1)
    body = {"resource_provider_generation": 1, "traits": ["HW_NUMA_ROOT"]}
    client.call("PUT", f"{PROVIDERS}/{provider}/traits", body)
    for model in (
        models.ResourceProvider,
        models.Inventory,
        models.ResourceClass,
        models.Trait,
    ):
        without = {"created_at": None, "updated_at": None}
        execute(database, sa.update(model).values(without))
    for path in (
        PROVIDERS,
        f"{PROVIDERS}/{provider}",
        f"{PROVIDERS}/{provider}/inventories",
        f"{PROVIDERS}/{provider}/inventories/VCPU",
        f"{PROVIDERS}/{provider}/traits",
        "/resource_classes",
        "/resource_classes/VCPU",
        "/traits",
    ):
        client.get(path)
    assert client.call("GET", "/traits/HW_NUMA_ROOT").status == 204


def test_another_service_may_change_a_provider_between_two_statements(
    client: Client, database: Database
) -> None:
    """It does not lock as we do, but compares generations as we do."""
    provider = client.make_provider(VCPU=1)
    row = models.ResourceProvider
    other = (
        sa.update(row).where(row.uuid == provider).values(generation=row.generation + 1)
    )
    for method, path, body, prefix in [
        (
            "PUT",
            "inventories",
            {"resource_provider_generation": 1, "inventories": {}},
            "update conflict: Another thread",
        ),
        (
            "PUT",
            "inventories/VCPU",
            {"resource_provider_generation": 1, "total": 5},
            "update conflict: Another thread",
        ),
        (
            "POST",
            "inventories",
            {"resource_class": "VGPU", "total": 5},
            "Update conflict: Another thread",
        ),
        ("DELETE", "inventories/VCPU", None, "of class VCPU: Another thread"),
        (
            "DELETE",
            "inventories",
            None,
            f"Unable to delete inventory for resource provider {provider} because the "
            "inventory was updated by another process. Please retry your request.",
        ),
        (
            "PUT",
            "traits",
            {"resource_provider_generation": 1, "traits": ["HW_NUMA_ROOT"]},
            "Another thread concurrently updated the resource provider data. "
            "Please retry your update",
        ),
        (
            "PUT",
            "aggregates",
            {"resource_provider_generation": 1, "aggregates": []},
            "Update conflict: Another thread",
        ),
    ]:
        interfere = _Interference(database, other)
        with interfere:
            answer = client.call(method, f"{PROVIDERS}/{provider}/{path}", body)
        assert interfere.done, path
        assert answer.status == 409, (path, answer)
        assert answer.code == "placement.concurrent_update"
        assert prefix in answer.detail
        assert client.generation(provider) == 1, "the transaction was rolled back"


class _Interference:
    """Changes the row of a provider right before its generation is compared."""

    def __init__(self, database: Database, statement: Any) -> None:
        self._database = database
        self._statement = statement
        self.done = False

    def __enter__(self) -> None:
        sa.event.listen(self._database.engine, "before_cursor_execute", self._interfere)

    def __exit__(self, *unused: object) -> None:
        sa.event.remove(self._database.engine, "before_cursor_execute", self._interfere)

    def _interfere(
        self, connection: sa.Connection, cursor: Any, text: str, *unused: Any
    ) -> None:
        if "UPDATE resource_providers SET" in text and not self.done:
            self.done = True
            connection.execute(self._statement)


def test_a_lost_race_for_traits_is_reported(client: Client, database: Database) -> None:
    provider = client.make_provider()
    path = f"{PROVIDERS}/{provider}/traits"
    body = {"resource_provider_generation": 1, "traits": ["HW_NUMA_ROOT"]}
    assert client.call("PUT", path, body).status == 200
    row = models.ResourceProvider
    other = sa.update(row).where(row.uuid == provider).values(generation=77)
    interfere = _Interference(database, other)
    with interfere:
        answer = client.call("DELETE", path)
    assert interfere.done
    assert (answer.status, answer.code) == (409, "placement.concurrent_update")
    assert "Another thread concurrently updated" in answer.detail
    assert client.call("DELETE", path).status == 204

"""Sums over all providers and consumers."""

from placement.objects import total
from placement.objects.total import Amounts
from placement_foundation.database.storage import Database
from tests.client import Client, new_uuid


def test_an_empty_cloud(database: Database) -> None:
    assert database.read(total.load) == total.Totals(0, {}, {})


def test_what_all_providers_have_and_consumers_use(
    client: Client, database: Database
) -> None:
    providers = [client.make_provider(VCPU=8, DISK_GB=10) for _ in range(2)]
    path = f"/resource_providers/{providers[0]}/inventories/VCPU"
    changed = {
        "resource_provider_generation": 1,
        "total": 9,
        "reserved": 2,
        # 7 * 1.1 is 7.7, of which 7 can be allocated.
        "allocation_ratio": 1.1,
    }
    assert client.call("PUT", path, changed).status == 200
    for kind in ("INSTANCE", "INSTANCE", "MIGRATION"):
        claimed = {providers[0]: {"VCPU": 1, "DISK_GB": 2}}
        client.claim(new_uuid(), claimed, consumer_type=kind)
    client.call("POST", "/resource_providers", {"name": "empty"})
    sums = database.read(total.load)
    assert sums.providers == 3
    assert sums.classes == {
        "VCPU": Amounts(providers=2, total=17, reserved=2, capacity=15, used=3),
        "DISK_GB": Amounts(providers=2, total=20, reserved=0, capacity=20, used=6),
    }
    assert sums.consumers == {"INSTANCE": 2, "MIGRATION": 1}


def test_a_consumer_without_a_type_is_unknown(
    client: Client, database: Database
) -> None:
    provider = client.make_provider(VCPU=8)
    body = {
        "allocations": [
            {"resource_provider": {"uuid": provider}, "resources": {"VCPU": 1}}
        ],
        "project_id": "a",
        "user_id": "b",
    }
    path = f"/allocations/{new_uuid()}"
    assert client.call("PUT", path, body, version="1.8").status == 204
    assert database.read(total.load).consumers == {"unknown": 1}

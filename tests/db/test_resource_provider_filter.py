"""Which providers filters find, compared with looking at each by itself."""

import dataclasses
import random
from functools import partial
from typing import Any

import pytest

from placement.forest import loading, reading
from placement.model.inventory import Inventory
from placement.model.resource_provider import ProviderFilters
from placement.questions import providers
from placement_foundation.database.storage import Database
from tests.client import Client, new_uuid

TRAITS = ["HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "HW_CPU_X86_SGX", "HW_NUMA_ROOT"]
CLASSES = ["VCPU", "MEMORY_MB", "DISK_GB"]
# Some that no database but a decimal one calculates with exactly.
RATIOS = [0.1, 0.3, 0.7, 1.0, 1.1, 1.5, 2.3, 16.0, 3.4e38]


@dataclasses.dataclass(slots=True)
class Host:
    """A provider as described by the test."""

    uuid: str
    root: str
    traits: set[str]
    aggregates: set[str]
    inventories: dict[str, Inventory]
    used: dict[str, int]

    def passes(self, filters: ProviderFilters) -> bool:
        """Return whether a provider matches a filter, in the words of the API."""
        return (
            filters.name in (None, self.uuid)
            and filters.uuid in (None, self.uuid)
            and filters.in_tree in (None, self.root)
            and all(group & self.traits for group in filters.traits)
            and not filters.forbidden_traits & self.traits
            and all(group & self.aggregates for group in filters.aggregates)
            and not filters.forbidden_aggregates & self.aggregates
            and all(self.has(*each) for each in filters.resources.items())
        )

    def has(self, name: str, amount: int) -> bool:
        inventory = self.inventories.get(name)
        return (
            inventory is not None
            and inventory.min_unit <= amount <= inventory.max_unit
            and amount % inventory.step_size == 0
            and self.used.get(name, 0) + amount
            <= (inventory.total - inventory.reserved) * inventory.allocation_ratio
        )


def make_host(client: Client, chance: random.Random, aggregates: list[str]) -> Host:
    inventories = {
        name: Inventory(
            total=chance.choice([1, 7, 10, 30]),
            reserved=chance.choice([0, 0, 1]),
            min_unit=chance.choice([1, 1, 2]),
            max_unit=chance.choice([4, 2147483647]),
            step_size=chance.choice([1, 1, 2]),
            allocation_ratio=chance.choice(RATIOS),
        )
        for name in CLASSES
        if chance.random() < 0.7
    }
    uuid = new_uuid()
    host = Host(
        uuid,
        uuid,
        {name for name in TRAITS if chance.random() < 0.5},
        {name for name in aggregates if chance.random() < 0.5},
        inventories,
        {},
    )
    fill(client, host)
    return host


def fill(client: Client, host: Host) -> None:
    path = f"/resource_providers/{host.uuid}"
    add = {"name": host.uuid, "uuid": host.uuid}
    records = {
        name: dataclasses.asdict(each) for name, each in host.inventories.items()
    }
    steps: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/resource_providers", add),
        ("PUT", f"{path}/inventories", {"inventories": records}),
        ("PUT", f"{path}/aggregates", {"aggregates": sorted(host.aggregates)}),
        ("PUT", f"{path}/traits", {"traits": sorted(host.traits)}),
    ]
    for method, where, body in steps:
        if method == "PUT":
            generation = client.generation(host.uuid)
            body = {**body, "resource_provider_generation": generation}
        answer = client.call(method, where, body)
        assert answer.status == 200, answer


def use(client: Client, chance: random.Random, host: Host) -> None:
    """Take something of what a host has, if it fits."""
    for name in host.inventories:
        amount = chance.choice([1, 2, 3])
        if host.has(name, amount):
            answer = client.claim(new_uuid(), {host.uuid: {name: amount}})
            assert answer.status == 204, answer
            host.used[name] = amount


def some(chance: random.Random, values: list[str], most: int) -> frozenset[str]:
    return frozenset(chance.sample(values, chance.randint(1, most)))


def make_filters(
    chance: random.Random, hosts: list[Host], aggregates: list[str]
) -> ProviderFilters:
    def maybe(value: Any, otherwise: Any, probability: float = 0.3) -> Any:
        return value if chance.random() < probability else otherwise

    groups = [some(chance, TRAITS, 2) for _ in range(chance.randint(1, 2))]
    members = [some(chance, aggregates, 2) for _ in range(chance.randint(1, 2))]
    amounts = {
        name: chance.choice([1, 2, 3, 4, 7, 11])
        for name in chance.sample(CLASSES, chance.randint(1, 2))
    }
    return ProviderFilters(
        name=maybe(chance.choice(hosts).uuid, None, 0.1),
        uuid=maybe(chance.choice(hosts).uuid, None, 0.1),
        in_tree=maybe(chance.choice(hosts).uuid, None, 0.1),
        traits=maybe(groups, []),
        forbidden_traits=maybe(some(chance, TRAITS, 2), frozenset()),
        aggregates=maybe(members, []),
        forbidden_aggregates=maybe(some(chance, aggregates, 1), frozenset()),
        resources=maybe(amounts, {}, 0.6),
    )


def test_filters_find_what_they_ask_for(client: Client, database: Database) -> None:
    client, chance = client, random.Random(7)
    aggregates = [new_uuid() for _ in range(4)]
    hosts = [make_host(client, chance, aggregates) for _ in range(40)]
    for host in hosts:
        use(client, chance, host)
    found_some = found_of_tree = 0
    for _ in range(300):
        filters = make_filters(chance, hosts, [*aggregates, new_uuid()])
        expected = [host.uuid for host in hosts if host.passes(filters)]
        found = providers.list_by_filters(database.read(loading.load), filters)
        assert [provider.uuid for provider in found] == expected, filters
        found_some += bool(expected)
        if only := providers.tree_of(filters):
            tree = database.fetch(partial(reading.load_around, named=only))
            found = providers.list_members(tree, filters)
            assert [provider.uuid for provider in found] == expected, filters
            found_of_tree += bool(expected)
    assert found_some > 50
    assert found_of_tree > 5


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("total", [1, 10, 30])
def test_a_filter_and_a_claim_agree_on_what_fits(
    client: Client, total: int, ratio: float
) -> None:
    host = Host(
        uuid := new_uuid(),
        uuid,
        set(),
        set(),
        {"VCPU": Inventory(total, allocation_ratio=ratio)},
        {},
    )
    fill(client, host)
    most = min(int(total * ratio), 2147483647)
    for amount in (most + 1, most):
        path = f"/resource_providers?resources=VCPU:{amount}"
        found = client.call("GET", path)
        claimed = client.claim(new_uuid(), {uuid: {"VCPU": amount}})
        if 0 < amount < 2147483648:
            fits = len(found.document["resource_providers"]) == 1
            assert fits == (claimed.status == 204) == (amount == most)


@pytest.mark.parametrize("count", [1500, 25000])
def test_about_as_many_as_an_address_can_hold(client: Client, count: int) -> None:
    aggregates = [new_uuid() for _ in range(count)]
    uuid = new_uuid()
    fill(client, Host(uuid, uuid, set(), set(aggregates), {}, {}))
    client.make_provider(VCPU=1)
    listed = client.get(f"/resource_providers/{uuid}/aggregates")["aggregates"]
    assert set(listed) == set(aggregates)
    path = f"member_of=in:{','.join(aggregates)}"
    (found,) = client.get(f"/resource_providers?{path}")["resource_providers"]
    assert found["uuid"] == uuid
    names = ",".join(f"CUSTOM_{number}" for number in range(count))
    assert client.get(f"/traits?name=in:{names}") == {"traits": []}

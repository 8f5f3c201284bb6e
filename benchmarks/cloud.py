"""Synthetic clouds, the same each time, written straight into a database."""

import dataclasses
import functools
import itertools
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.forest import loading
from placement.forest.vocabulary import Vocabulary
from placement.model.tree import SHARING
from placement_foundation.database import sequence
from placement_foundation.database.storage import Database

NAMESPACE = uuid.UUID("9c5f5f9e-3e0a-4d6e-8a44-6f1c1f4b2a10")
CHUNK = 20_000
TRAITS_OF_A_HOST = 70
HOSTS_IN_A_RACK = 40
# The number of consumers with allocations on a host.
CONSUMERS_OF_A_HOST = 4

HOST = {"VCPU": 64, "MEMORY_MB": 262_144, "DISK_GB": 4_000}
# The part of each class that is in use.
IN_USE = 0.4


@dataclasses.dataclass(frozen=True)
class Node:
    """A provider: ``used`` is the part of ``totals`` in use, by class."""

    name: str
    parent: str | None
    totals: Mapping[str, int]
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    used: Mapping[str, int] = dataclasses.field(default_factory=dict)


def uuid_of(name: str) -> str:
    """Return the UUID of a provider, an aggregate or a consumer."""
    return str(uuid.uuid5(NAMESPACE, name))


def flat(hosts: int) -> Iterator[Node]:
    """Yield hosts that are alone in their trees, of eight models, in racks."""
    for number in range(hosts):
        yield _host(number, HOST)


def shared(hosts: int) -> Iterator[Node]:
    """Yield hosts without disks, and a disk for each rack."""
    without_disk = {name: total for name, total in HOST.items() if name != "DISK_GB"}
    for number in range(hosts):
        yield _host(number, without_disk)
    for rack in range(-(-hosts // HOSTS_IN_A_RACK)):
        yield Node(
            f"disk{rack}",
            None,
            {"DISK_GB": 100_000},
            traits=(SHARING,),
            aggregates=(f"rack{rack}",),
        )


def nested(hosts: int) -> Iterator[Node]:
    """Yield hosts with two NUMA nodes, each with a NIC for two virtual networks."""
    for number in range(hosts):
        host = _host(number, {"DISK_GB": HOST["DISK_GB"]})
        yield host
        for node in range(2):
            numa = Node(
                f"{host.name}-numa{node}",
                host.name,
                {"VCPU": 32, "MEMORY_MB": 131_072},
                traits=("HW_NUMA_ROOT",),
            )
            yield _in_use(numa)
            nic = Node(f"{numa.name}-nic", numa.name, {}, traits=("HW_NIC_SRIOV",))
            yield nic
            for port in range(2):
                yield Node(
                    f"{nic.name}-port{port}",
                    nic.name,
                    {"SRIOV_NET_VF": 8},
                    traits=(f"CUSTOM_PHYSNET{port}",),
                )


def wide(hosts: int, devices: int = 8) -> Iterator[Node]:
    """Yield hosts with several GPUs, each its own provider."""
    for number in range(hosts):
        host = _host(number, HOST)
        yield host
        for device in range(devices):
            yield Node(
                f"{host.name}-gpu{device}",
                host.name,
                {"PGPU": 1},
                traits=("HW_GPU_API_VULKAN",),
            )


def own(hosts: int) -> Iterator[Node]:
    """Yield hosts that each have a trait of their own."""
    for number in range(hosts):
        host = _host(number, HOST)
        traits = (*host.traits, f"CUSTOM_HOST{number}")
        yield dataclasses.replace(host, traits=traits)


KINDS: Mapping[str, Callable[[int], Iterator[Node]]] = {
    "flat": flat,
    "own": own,
    "shared": shared,
    "nested": nested,
    "wide": wide,
}


def _host(number: int, totals: Mapping[str, int]) -> Node:
    rack = number // HOSTS_IN_A_RACK
    host = Node(
        f"host{number}",
        None,
        totals,
        traits=(f"model {number % 8}", f"CUSTOM_RACK{rack}"),
        aggregates=(f"rack{rack}", f"zone{rack % 3}"),
    )
    return _in_use(host)


def _in_use(node: Node) -> Node:
    used = {
        name: int(total * IN_USE) // CONSUMERS_OF_A_HOST
        for name, total in node.totals.items()
    }
    return dataclasses.replace(node, used=used)


def plant(database: Database, nodes: Iterable[Node]) -> int:
    """Store a cloud in a database without providers; return how many it has."""
    listed = list(nodes)
    database.write(lambda connection: _plant(connection, listed))
    return len(listed)


def _plant(connection: sa.Connection, nodes: list[Node]) -> None:
    names = itertools.chain.from_iterable(node.traits for node in nodes)
    custom = dict.fromkeys(name for name in names if name.startswith("CUSTOM_"))
    _insert(connection, models.Trait, ({"name": name} for name in custom))
    _Planter(connection, nodes, loading.load_vocabulary(connection)).plant()
    # Sequences do not follow rows that were inserted with their ids.
    sequence.count_on(connection, models.Base.metadata.sorted_tables)


def _insert(
    connection: sa.Connection,
    table: type[models.Base],
    rows: Iterable[Mapping[str, Any]],
) -> None:
    remaining = iter(rows)
    while chunk := list(itertools.islice(remaining, CHUNK)):
        connection.execute(sa.insert(table), chunk)


class _Planter:
    """Turns nodes into rows."""

    def __init__(
        self, connection: sa.Connection, nodes: list[Node], known: Vocabulary
    ) -> None:
        self._insert = functools.partial(_insert, connection)
        self._nodes = nodes
        self._ids = {node.name: number for number, node in enumerate(nodes, 1)}
        self._classes = known.class_ids
        self._traits = known.trait_ids
        self._standard = [
            name for name in known.traits.values() if name.startswith("HW_CPU")
        ]

    def plant(self) -> None:
        """Insert everything, table by table."""
        aggregates = dict.fromkeys(
            name for node in self._nodes for name in node.aggregates
        )
        aggregate_ids = {name: key for key, name in enumerate(aggregates, 1)}
        self._insert(models.ResourceProvider, map(self._provider, self._nodes))
        self._insert(models.Inventory, self._inventories())
        self._insert(models.Consumer, self._consumers())
        self._insert(models.Allocation, self._allocations())
        self._insert(
            models.ResourceProviderTrait,
            (
                {"resource_provider_id": self._ids[node.name], "trait_id": trait_id}
                for node in self._nodes
                for trait_id in dict.fromkeys(self._trait_ids(node))
            ),
        )
        self._insert(
            models.Aggregate,
            ({"id": key, "uuid": uuid_of(name)} for name, key in aggregate_ids.items()),
        )
        self._insert(
            models.ResourceProviderAggregate,
            (
                {
                    "resource_provider_id": self._ids[node.name],
                    "aggregate_id": aggregate_ids[name],
                }
                for node in self._nodes
                for name in node.aggregates
            ),
        )

    def _provider(self, node: Node) -> dict[str, Any]:
        root = node.name.split("-")[0]
        return {
            "id": self._ids[node.name],
            "uuid": uuid_of(node.name),
            "name": node.name,
            "generation": 0,
            "parent_provider_id": node.parent and self._ids[node.parent],
            "root_provider_id": self._ids[root],
        }

    def _inventories(self) -> Iterator[dict[str, Any]]:
        for node in self._nodes:
            for name, total in node.totals.items():
                yield {
                    "resource_provider_id": self._ids[node.name],
                    "resource_class_id": self._classes[name],
                    "total": total,
                    "reserved": 0,
                    "min_unit": 1,
                    "max_unit": total,
                    "step_size": 1,
                    "allocation_ratio": 1.0,
                }

    def _consumers(self) -> Iterator[dict[str, Any]]:
        self._insert(models.Project, [{"id": 1, "external_id": "project"}])
        self._insert(models.User, [{"id": 1, "external_id": "user"}])
        for node in self._nodes:
            for which in range(CONSUMERS_OF_A_HOST if node.used else 0):
                yield {
                    "uuid": uuid_of(f"{node.name} consumer {which}"),
                    "project_id": 1,
                    "user_id": 1,
                    "generation": 1,
                }

    def _allocations(self) -> Iterator[dict[str, Any]]:
        for node in self._nodes:
            for which in range(CONSUMERS_OF_A_HOST if node.used else 0):
                for name, amount in node.used.items():
                    yield {
                        "resource_provider_id": self._ids[node.name],
                        "resource_class_id": self._classes[name],
                        "consumer_id": uuid_of(f"{node.name} consumer {which}"),
                        "used": amount,
                    }

    def _trait_ids(self, node: Node) -> Iterator[int]:
        """Yield the ids of the traits of a node; a model stands for many traits."""
        for name in node.traits:
            if name.startswith("model "):
                first = int(name.removeprefix("model "))
                chosen = self._standard[first : first + TRAITS_OF_A_HOST]
                yield from (self._traits[each] for each in chosen)
            else:
                yield self._traits[name]

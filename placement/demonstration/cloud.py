"""The contents of the demonstration cloud, the same each time.

Every name in it begins with ``demo-`` or ``CUSTOM_DEMO_``, and every UUID is derived
from a name, so both can be recognised.
"""

import dataclasses
import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placement.model.inventory import Inventory
from placement.model.tree import SHARING

PREFIX = "demo-"
NAMESPACE = uuid.UUID("5d1cbb1e-64a0-4c43-9e5e-3b0f3f0f7b55")
USER = "demo-user"
PROJECTS = tuple(
    f"{PREFIX}{name}"
    for name in ("web", "search", "billing", "video", "mail", "build", "lab", "archive")
)
# A trait that nothing uses any more.
UNUSED_TRAIT = "CUSTOM_DEMO_RETIRED"
UNUSED_CLASS = "CUSTOM_DEMO_RETIRED_FPGA"
TYPES = ("INSTANCE", "MIGRATION")
SSD, TRUSTED = "CUSTOM_DEMO_SSD", "CUSTOM_DEMO_TRUSTED"
TRAITS = (SSD, TRUSTED, UNUSED_TRAIT)

HOSTS_IN_A_RACK = 20
ZONES = 3
DAYS = 500

# Amounts by resource class, by provider name.
Claims = Mapping[str, Mapping[str, int]]


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedProvider:
    """A provider; ``inventories`` are keyed by resource class, aggregates are names."""

    name: str
    parent: str | None
    inventories: Mapping[str, Inventory]
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedConsumer:
    """Something that uses a host, created so many days ago."""

    name: str
    project: str
    type: str
    days: float
    claims: Claims


@dataclasses.dataclass(frozen=True, slots=True)
class CloudPart:
    """Providers, parents first, with their consumers."""

    providers: tuple[PlannedProvider, ...]
    consumers: tuple[PlannedConsumer, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class HostKind:
    """The hosts of a kind. What a part is called follows the name of the host.

    ``parts`` have their inventories, as total, reserved and allocation ratio, and their
    traits; the root is the first. Servers have the usual flavors until a host is full;
    or each of ``servers``, which are claims, with a probability of ``chance`` on a busy
    host.
    """

    name: str
    parts: Mapping[str, tuple[Mapping[str, tuple[Any, ...]], tuple[str, ...]]]
    servers: Sequence[Claims] = ()
    chance: float = 1.0


# It uses the disk of its zone, and the next kind its own.
_COMPUTE = HostKind(
    "compute", {"": ({"VCPU": (64, 2, 4.0), "MEMORY_MB": (262_144, 8_192)}, ())}
)
_DISK = {"DISK_GB": (7_200, 200)}
_LOCAL = HostKind(
    "local",
    {"": ({"VCPU": (96, 4, 2.0), "MEMORY_MB": (393_216, 16_384)} | _DISK, (SSD,))},
)
# Each node has a card with two ports.
_NUMA_NODE: Mapping[str, Any] = {
    "": ({"PCPU": (32,), "MEMORY_MB": (196_608, 8_192)}, ("HW_NUMA_ROOT",)),
    "-nic": ({}, ("HW_NIC_SRIOV",)),
    "-nic-port0": ({"SRIOV_NET_VF": (8,)}, ("HW_NIC_OFFLOAD_TSO",)),
    "-nic-port1": ({"SRIOV_NET_VF": (8,)}, ("HW_NIC_OFFLOAD_TSO",)),
}
_NODES = ("-numa0", "-numa1")
_NUMA = HostKind(
    "numa",
    {
        "": ({"DISK_GB": (3_600, 100)}, ()),
        **{node + name: part for node in _NODES for name, part in _NUMA_NODE.items()},
    },
    [
        {
            "": {"DISK_GB": 80},
            node: {"PCPU": 4, "MEMORY_MB": 16_384},
            f"{node}-nic-port{slot % 2}": {"SRIOV_NET_VF": 2},
        }
        for node in _NODES
        for slot in range(8)
    ],
)
# Each card is allocated as a whole.
_CARDS = tuple(f"-gpu{number}" for number in range(8))
_GPU = HostKind(
    "gpu",
    {
        "": ({"VCPU": (128, 4), "MEMORY_MB": (1_048_576, 16_384)} | _DISK, (SSD,)),
        **dict.fromkeys(_CARDS, ({"PGPU": (1,)}, ("HW_GPU_API_VULKAN",))),
    },
    [
        {"": {"VCPU": 15, "MEMORY_MB": 122_880, "DISK_GB": 400}, card: {"PGPU": 1}}
        for card in _CARDS
    ],
    0.9,
)
# The kinds of racks, in turn, and the traits of their hosts.
KINDS = (_COMPUTE, _LOCAL, _NUMA, _COMPUTE, _GPU, _COMPUTE)
_COMMON = (
    "COMPUTE_NODE",
    "COMPUTE_TRUSTED_CERTS",
    "HW_CPU_X86_AVX2",
    "HW_CPU_X86_SSE42",
)
_MODELS = (
    ("HW_CPU_X86_VMX", "HW_CPU_X86_AVX"),
    ("HW_CPU_X86_VMX", "HW_CPU_X86_AVX", "HW_CPU_X86_AVX512F", TRUSTED),
    ("HW_CPU_X86_SVM", "HW_CPU_X86_AMD_SEV", TRUSTED),
)


def _inventory(total: int, reserved: int = 0, ratio: float = 1.0) -> Inventory:
    """Return an inventory of which one consumer may take everything."""
    return Inventory(total, reserved, max_unit=total, allocation_ratio=ratio)


def uuid_of(name: str) -> str:
    """Return the UUID of a provider, an aggregate or a consumer."""
    return str(uuid.uuid5(NAMESPACE, name))


def list_aggregates(hosts: int) -> list[str]:
    """Return the names of all aggregates of a cloud."""
    racks = -(-hosts // HOSTS_IN_A_RACK)
    return [*map(_rack, range(racks)), *map(_zone, range(ZONES))]


def make(hosts: int) -> Iterator[CloudPart]:
    """Yield the parts of a cloud: storage that hosts share, then the hosts."""
    dice = random.Random(1)
    share = -(-hosts // ZONES) * 500 + 20_000
    for zone in range(ZONES):
        disk = {"DISK_GB": _inventory(share, reserved=share // 20)}
        name, aggregates = _storage(zone), (_zone(zone),)
        yield CloudPart(
            (PlannedProvider(name, None, disk, (SHARING, SSD), aggregates),)
        )
    busy = 0.0
    for number in range(hosts):
        rack, place = divmod(number, HOSTS_IN_A_RACK)
        if not place:
            busy = dice.triangular(0.1, 1.0, 0.75)
        yield _host(rack, place, min(1.0, dice.gauss(busy, 0.12)), dice)


def _rack(number: int) -> str:
    return f"{PREFIX}r{number:02}"


def _zone(number: int) -> str:
    return f"{PREFIX}zone{number}"


def _storage(zone: int) -> str:
    return f"{PREFIX}storage-{zone}"


def _host(rack: int, place: int, busy: float, dice: random.Random) -> CloudPart:
    """Return a host of the kind that its rack has, filled to some degree."""
    kind, model = KINDS[rack % len(KINDS)], _MODELS[rack % len(_MODELS)]
    # Each zone has hosts of each kind.
    zone = rack // 2 % ZONES
    host = f"{_rack(rack)}-{kind.name}{place:02}"
    disabled = ("COMPUTE_STATUS_DISABLED",) if dice.random() < 0.02 else ()
    common = (*_COMMON, *model, *disabled)
    providers = [
        PlannedProvider(
            host + part,
            host + part.rpartition("-")[0] if part else None,
            {name: _inventory(*numbers) for name, numbers in inventories.items()},
            traits if part else (*common, *traits),
            () if part else (_rack(rack), _zone(zone)),
        )
        for part, (inventories, traits) in kind.parts.items()
    ]
    servers = _usual_servers(providers[0], _storage(zone), busy, dice)
    if kind.servers:
        servers = (
            {host + name: amounts for name, amounts in claims.items()}
            for claims in kind.servers
            if dice.random() < kind.chance * busy
        )
    consumers = [
        _consumer(f"{host}-server{number}", claims, dice)
        for number, claims in enumerate(servers, 1)
    ]
    return CloudPart(tuple(providers), tuple(consumers))


def _usual_servers(
    host: PlannedProvider, storage: str, busy: float, dice: random.Random
) -> Iterator[Claims]:
    """Yield the claims of servers of the usual kind, more of them on a busier host."""
    room = {
        name: int(inventory.capacity * busy)
        for name, inventory in host.inventories.items()
    }
    while True:
        cores = dice.choice((1, 2, 2, 4, 4, 8, 16))
        memory = cores * dice.choice((2, 4, 4, 8)) * 1024
        here = {"VCPU": cores, "MEMORY_MB": memory}
        disk = {"DISK_GB": dice.choice((20, 40, 80, 160))}
        claims = {host.name: here, storage: disk}
        if "DISK_GB" in room:
            claims = {host.name: here | disk}
        for name, amount in claims[host.name].items():
            room[name] -= amount
        if min(room.values()) < 0:
            return
        yield claims


def _consumer(name: str, claims: Claims, dice: random.Random) -> PlannedConsumer:
    # A few projects have most of the servers, and most servers are young.
    weights = [1 / place for place in range(1, len(PROJECTS) + 1)]
    [project] = dice.choices(PROJECTS, weights)
    kind = "MIGRATION" if dice.random() < 0.02 else "INSTANCE"
    return PlannedConsumer(name, project, kind, DAYS * dice.random() ** 3, claims)

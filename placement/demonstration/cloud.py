"""The contents of the demonstration cloud, the same each time.

Every name in it begins with ``demo-`` or ``CUSTOM_DEMO_``, and every UUID is derived
from a name, so both can be recognised.
"""

import dataclasses
import random
import uuid
from collections.abc import Callable, Iterator, Mapping

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
    for zone in range(ZONES):
        share = -(-hosts // ZONES) * 500 + 20_000
        yield CloudPart((_storage(zone, share),))
    busy = 0.0
    for number in range(hosts):
        rack, place = divmod(number, HOSTS_IN_A_RACK)
        if not place:
            busy = dice.triangular(0.1, 1.0, 0.75)
        yield _Host(rack, place, min(1.0, dice.gauss(busy, 0.12)), dice).part()


def _rack(number: int) -> str:
    return f"{PREFIX}r{number:02}"


def _zone(number: int) -> str:
    return f"{PREFIX}zone{number}"


def _storage_name(zone: int) -> str:
    return f"{PREFIX}storage-{zone}"


def _storage(zone: int, total: int) -> PlannedProvider:
    return PlannedProvider(
        _storage_name(zone),
        None,
        {"DISK_GB": _inventory(total, reserved=total // 20)},
        (SHARING, SSD),
        (_zone(zone),),
    )


class _Host:
    """Makes a host of the kind that its rack has, and fills it to some degree."""

    def __init__(self, rack: int, place: int, busy: float, dice: random.Random) -> None:
        # Each zone has hosts of each kind.
        self._zone = rack // 2 % ZONES
        self._busy = busy
        self._dice = dice
        self._kind = KINDS[rack % len(KINDS)]
        self.name = f"{_rack(rack)}-{self._kind.__name__[1:]}{place:02}"
        model = _MODELS[rack % len(_MODELS)]
        self._traits = (*_COMMON, *model)
        if dice.random() < 0.02:
            self._traits += ("COMPUTE_STATUS_DISABLED",)
        self._aggregates = (_rack(rack), _zone(self._zone))
        self._count = 0

    def part(self) -> CloudPart:
        """Return the host with the providers inside it and its consumers."""
        return self._kind(self)

    def provider(
        self, inventories: Mapping[str, Inventory], *traits: str
    ) -> PlannedProvider:
        """Return the root of the host."""
        return PlannedProvider(
            self.name, None, inventories, (*self._traits, *traits), self._aggregates
        )

    @property
    def storage(self) -> str:
        """The storage pool that it shares."""
        return _storage_name(self._zone)

    def chance(self, share: float) -> bool:
        """Return True with a probability of ``share``."""
        return self._dice.random() < share * self._busy

    def flavor(self) -> dict[str, int]:
        """Return the amounts of a new server."""
        cores = self._dice.choice((1, 2, 2, 4, 4, 8, 16))
        memory = cores * self._dice.choice((2, 4, 4, 8)) * 1024
        disk = self._dice.choice((20, 40, 80, 160))
        return {"VCPU": cores, "MEMORY_MB": memory, "DISK_GB": disk}

    def consumer(self, claims: Claims) -> PlannedConsumer:
        """Return a new consumer with these claims."""
        self._count += 1
        # A few projects have most of the servers, and most servers are young.
        weights = [1 / place for place in range(1, len(PROJECTS) + 1)]
        [project] = self._dice.choices(PROJECTS, weights)
        kind = "MIGRATION" if self._dice.random() < 0.02 else "INSTANCE"
        days = DAYS * self._dice.random() ** 3
        name = f"{self.name}-server{self._count}"
        return PlannedConsumer(name, project, kind, days, claims)

    def fill(
        self, provider: str, inventories: Mapping[str, Inventory], disk: str
    ) -> list[PlannedConsumer]:
        """Return servers of the usual kind, more of them on a busier host."""
        room = {
            name: int(inventory.capacity * self._busy)
            for name, inventory in inventories.items()
        }
        consumers: list[PlannedConsumer] = []
        while True:
            claims: dict[str, dict[str, int]] = {}
            for name, amount in self.flavor().items():
                place = disk if name == "DISK_GB" else provider
                claims.setdefault(place, {})[name] = amount
            here = claims[provider]
            if any(room[name] < amount for name, amount in here.items()):
                return consumers
            for name, amount in here.items():
                room[name] -= amount
            consumers.append(self.consumer(claims))


def _compute(host: _Host) -> CloudPart:
    """Make a host that uses the disk of its zone."""
    inventories = {
        "VCPU": _inventory(64, reserved=2, ratio=4.0),
        "MEMORY_MB": _inventory(262_144, reserved=8_192),
    }
    return CloudPart(
        (host.provider(inventories),),
        tuple(host.fill(host.name, inventories, host.storage)),
    )


def _local(host: _Host) -> CloudPart:
    """Make a host with its own disks."""
    inventories = {
        "VCPU": _inventory(96, reserved=4, ratio=2.0),
        "MEMORY_MB": _inventory(393_216, reserved=16_384),
        "DISK_GB": _inventory(7_200, reserved=200),
    }
    return CloudPart(
        (host.provider(inventories, SSD),),
        tuple(host.fill(host.name, inventories, host.name)),
    )


def _numa(host: _Host) -> CloudPart:
    """Make a host with two NUMA nodes, each with a card that has two ports."""
    providers = [host.provider({"DISK_GB": _inventory(3_600, reserved=100)})]
    consumers = []
    for node in range(2):
        numa = f"{host.name}-numa{node}"
        inventories = {
            "PCPU": _inventory(32),
            "MEMORY_MB": _inventory(196_608, reserved=8_192),
        }
        providers.append(
            PlannedProvider(numa, host.name, inventories, ("HW_NUMA_ROOT",))
        )
        card = f"{numa}-nic"
        providers.append(PlannedProvider(card, numa, {}, ("HW_NIC_SRIOV",)))
        ports = [f"{card}-port{port}" for port in range(2)]
        for port in ports:
            functions = {"SRIOV_NET_VF": _inventory(8)}
            providers.append(
                PlannedProvider(port, card, functions, ("HW_NIC_OFFLOAD_TSO",))
            )
        for slot in range(8):
            if host.chance(1.0):
                claims: dict[str, dict[str, int]] = {
                    host.name: {"DISK_GB": 80},
                    numa: {"PCPU": 4, "MEMORY_MB": 16_384},
                }
                claims[ports[slot % 2]] = {"SRIOV_NET_VF": 2}
                consumers.append(host.consumer(claims))
    return CloudPart(tuple(providers), tuple(consumers))


def _gpu(host: _Host) -> CloudPart:
    """Make a host with GPU cards, each of which is allocated as a whole."""
    inventories = {
        "VCPU": _inventory(128, reserved=4),
        "MEMORY_MB": _inventory(1_048_576, reserved=16_384),
        "DISK_GB": _inventory(7_200, reserved=200),
    }
    providers = [host.provider(inventories, SSD)]
    consumers = []
    for number in range(8):
        card = f"{host.name}-gpu{number}"
        providers.append(
            PlannedProvider(
                card, host.name, {"PGPU": _inventory(1)}, ("HW_GPU_API_VULKAN",)
            )
        )
        if host.chance(0.9):
            own = {"VCPU": 15, "MEMORY_MB": 122_880, "DISK_GB": 400}
            consumers.append(host.consumer({host.name: own, card: {"PGPU": 1}}))
    return CloudPart(tuple(providers), tuple(consumers))


KINDS: tuple[Callable[[_Host], CloudPart], ...] = (
    _compute,
    _local,
    _numa,
    _compute,
    _gpu,
    _compute,
)

"""A small cloud to boot servers in, and a flavor for it."""

import dataclasses
from typing import Any

from placement_clients.client import Client
from placement_clients.record import INVENTORIES, TRAITS, Inventory
from placement_clients.request.flavor import Flavor
from placement_clients.request.image import Image

HOST = {"VCPU": 16, "MEMORY_MB": 32768, "DISK_GB": 500}
HOSTS = {
    "cn1": {"HW_CPU_X86_AVX2", "CUSTOM_TRUSTED"},
    "cn2": {"HW_CPU_X86_AVX2"},
    "cn3": {"HW_CPU_X86_AVX2", "CUSTOM_TRUSTED", "CUSTOM_GPU"},
    "cn4": set[str](),
}


@dataclasses.dataclass(frozen=True)
class Cloud:
    """A cloud: the UUIDs of its providers by name, and a client for it."""

    placement: Client
    uuids: dict[str, str]

    def names(self, uuids: Any) -> list[str]:
        by_uuid = {uuid: name for name, uuid in self.uuids.items()}
        return sorted(by_uuid[uuid] for uuid in uuids)

    def owner_of(self, server: str) -> Any:
        """Return the project of what a server holds."""
        path = f"/allocations/{server}"
        return self.placement.get(path, version="1.28").get("project_id")


def build(placement: Client) -> Cloud:
    """Make the cloud of the contract: three hosts, and one with two network cards."""
    for trait in ("CUSTOM_TRUSTED", "CUSTOM_GPU"):
        placement.put(f"/traits/{trait}", version="1.6")
    uuids = {}
    for name, traits in HOSTS.items():
        uuids[name] = provide(placement, name, HOST, traits)
    for name, traits in (("pf1", set[str]()), ("pf2", {"HW_NIC_OFFLOAD_GENEVE"})):
        amounts = {"SRIOV_NET_VF": 4}
        uuids[name] = provide(placement, name, amounts, traits, uuids["cn4"])
    return Cloud(placement, uuids)


def provide(
    placement: Client,
    name: str,
    amounts: dict[str, int],
    traits: set[str],
    parent: str | None = None,
) -> str:
    uuid = placement.create_provider(name, parent=parent).uuid
    inventories = {each: Inventory(total) for each, total in amounts.items()}
    placement.change(uuid, INVENTORIES, lambda known: inventories)
    placement.change(uuid, TRAITS, lambda known: traits)
    return uuid


def specs(text: str) -> dict[str, str]:
    """Return extra specs from a text of key=value items."""
    return dict(each.split("=") for each in text.split())


def flavor_m(text: str = "") -> Flavor:
    """Return the flavor m with extra specs, written as key=value."""
    return Flavor(2, 1024, 10, extra_specs=specs(text))


def image_of(text: str = "") -> Image:
    return Image(specs(text))

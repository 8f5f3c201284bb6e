"""Hosts in Placement, and their children that have the inventory of leases.

A reservation provider belongs to a host if it has the name for that, and is a child of
the host's own provider: a host may be renamed, and another one take its name.
"""

from placement_clients import errors
from placement_clients.client import Client, path_of
from placement_clients.record import INVENTORIES, Inventory, Provider
from placement_reservations.capacity import LARGEST, Limits, Size, Unit
from placement_reservations.errors import Failure

VERSION = "1.29"

# The classes of which a slot has an amount, in the order of ``Size``.
SIZES = ("VCPU", "MEMORY_MB", "DISK_GB")


class NoHost(Failure):
    """Placement has no root provider with that name."""

    may_pass = False


class Misplaced(Failure):
    """The reservation provider of a host is the child of another one."""


class MayBeGone:
    """A block of code that ends early if Placement says that something does not exist.

    A 404 without an error document is that of a proxy, and means nothing.
    """

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, kind: object, exc: object, traceback: object) -> bool:
        """Suppress the error if it is Placement's."""
        return isinstance(exc, errors.NotFound) and exc.is_own


def name_of(host: str) -> str:
    """Return the name of the reservation provider of a host."""
    return f"blazar_{host}"


def find_root(placement: Client, host: str) -> Provider | None:
    """Return the provider of a host, if there is one."""
    providers = placement.list_providers(name=host, version=VERSION)
    return next((each for each in providers if each.parent_uuid is None), None)


def get_root(placement: Client, host: str) -> Provider:
    """Return the provider of a host.

    :raises NoHost: there is none
    """
    root = find_root(placement, host)
    if root is None:
        raise NoHost(f"Placement does not know host {host}.")
    return root


def get_size(
    placement: Client, root: Provider, *, use_ratio: bool = False
) -> tuple[Size, Limits]:
    """Return the capacity of a host, and its limits.

    :param use_ratio: whether a resource can be allocated more than once; a ratio below
        one counts in any case, as no more than that can be allocated
    :raises errors.NotFound: the host is gone
    """
    inventories = placement.get_part(root.uuid, INVENTORIES).value
    capacities = [inventories.get(name, Inventory(0)) for name in SIZES]
    units = tuple(_unit(each) for each in capacities)
    size = Size(*(_allocatable(each, use_ratio) for each in capacities))
    return size, Limits(units, _ordinary_use(placement, root))


def _allocatable(inventory: Inventory, use_ratio: bool) -> int:
    ratio = inventory.allocation_ratio
    counted = ratio if use_ratio else min(1.0, ratio)
    amount = (inventory.total - inventory.reserved) * counted
    return int(max(0, min(amount, LARGEST)))


def _unit(inventory: Inventory) -> Unit:
    largest = min(inventory.max_unit, LARGEST)
    return Unit(inventory.min_unit, largest, inventory.step_size)


def _ordinary_use(placement: Client, root: Provider) -> Size:
    """Return the use of a host by consumers without a slot of a reservation."""
    uses = placement.list_allocations_of_provider(root.uuid)
    ordinary = set(uses)
    if ordinary:
        ordinary -= set(list_consumers(placement, _find_child(placement, root)))
    if ordinary:
        # The server of a slot may have gone before its slot was looked for.
        ordinary &= set(list_consumers(placement, root))
    used = Size()
    for consumer in ordinary:
        used += Size(*(uses[consumer].get(name, 0) for name in SIZES))
    return Size(*(min(amount, LARGEST) for amount in used.amounts()))


def find(placement: Client, host: str) -> Provider | None:
    """Return the reservation provider of a host, if it has one."""
    child = find_named(placement, host)
    if child and child.parent_uuid:
        with MayBeGone():
            parent = placement.get_provider(child.parent_uuid, version=VERSION)
            return child if parent.name == host else None
    return None


def _find_child(placement: Client, root: Provider) -> Provider | None:
    child = find_named(placement, root.name)
    return child if child and child.parent_uuid == root.uuid else None


def find_named(placement: Client, host: str) -> Provider | None:
    """Return the reservation provider with the name of a host, under any parent.

    Classes are removed there as well: a class belongs to one reservation.
    """
    providers = placement.list_providers(name=name_of(host), version=VERSION)
    return next(iter(providers), None)


def is_another(placement: Client, host: str, uuid: str | None) -> bool:
    """Return whether a host has a reservation provider, but not that with the UUID."""
    child = find(placement, host) if uuid else None
    return child is not None and child.uuid != uuid


def create(placement: Client, host: str, uuid: str | None = None) -> Provider:
    """Create the reservation provider of a host.

    :raises NoHost: there is no such host
    :raises errors.Conflict: it has one already
    """
    root = get_root(placement, host)
    return placement.create_provider(name_of(host), uuid=uuid, parent=root.uuid)


def ensure(placement: Client, host: str) -> Provider:
    """Return the reservation provider of a host, creating it if it has none.

    :raises NoHost: there is no such host
    :raises Misplaced: another host has it
    """
    child = find(placement, host)
    if child:
        return child
    try:
        return create(placement, host)
    except errors.Conflict as exc:
        # Another process was faster.
        child = find(placement, host)
        if child is None and find_named(placement, host):
            raise Misplaced(
                f"Provider {name_of(host)} is not a child of host {host}: was a host "
                "renamed, or replaced?"
            ) from exc
        if child is None:
            raise
        return child


def delete(placement: Client, host: str, uuid: str | None = None) -> None:
    """Delete the reservation provider of a host; given a UUID, only that one."""
    child = find(placement, host)
    if child and uuid in (None, child.uuid):
        # Another process may have been faster.
        with MayBeGone():
            path = path_of("resource_providers", child.uuid)
            placement.delete(path, version=VERSION)


def slots(total: int) -> Inventory:
    """Return the inventory of so many slots, each for one server."""
    return Inventory(total, min_unit=1, max_unit=1, step_size=1, allocation_ratio=1.0)


def get_usages(placement: Client, provider: Provider) -> dict[str, int]:
    """Return how much of each class is used of a provider.

    :raises errors.NotFound: there is no such provider
    """
    path = path_of("resource_providers", provider.uuid, "usages")
    usages: dict[str, int] = placement.get(path, version=VERSION)["usages"]
    return usages


def set_total(placement: Client, host: str, resource_class: str, total: int) -> None:
    """Set how many slots of a class the reservation provider of a host has.

    :raises NoHost: there is no such host
    """

    def change(known: dict[str, Inventory]) -> dict[str, Inventory]:
        return {**known, resource_class: slots(total)}

    placement.change(ensure(placement, host).uuid, INVENTORIES, change)


def remove_class(placement: Client, host: str, resource_class: str) -> None:
    """Remove the slots of a class from the reservation provider of a host.

    :raises errors.Conflict: some are in use
    """
    named = find_named(placement, host)
    if named:
        # The class may have been removed earlier, or the provider was.
        path = path_of("resource_providers", named.uuid, "inventories", resource_class)
        with MayBeGone():
            placement.retry_lost_races(lambda: placement.delete(path, version=VERSION))


def list_consumers(
    placement: Client, provider: Provider | None, resource_class: str | None = None
) -> list[str]:
    """Return the consumers with allocations on a provider, sorted.

    :param resource_class: only those with allocations of this class
    """
    if provider is None:
        return []
    with MayBeGone():
        held = placement.list_allocations_of_provider(provider.uuid)
        return sorted(
            consumer
            for consumer, amounts in held.items()
            if resource_class is None or resource_class in amounts
        )
    return []

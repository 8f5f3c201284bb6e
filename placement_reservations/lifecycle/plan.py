"""Plans: the steps to do in Placement and for flavors.

A plan is made from the tables. Each step may be repeated, and may be executed by
another process than the steps before it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from placement_clients.client import path_of
from placement_reservations import provider
from placement_reservations.errors import Failure
from placement_reservations.store.flavor import flavor_of
from placement_reservations.store.lease import Reservation
from placement_reservations.world import World

# Called before each part of a step that may take long.
GoOn: TypeAlias = Callable[[], None]
# Does something in a world, or finds it done.
Step: TypeAlias = Callable[[World, GoOn], object]


class StillInUse(Failure):
    """Something that is to be removed is still in use; it may be free in a moment."""


def make_flavor(reservation: Reservation) -> Step:
    """Make sure that a flavor exists, to which no project has access yet."""
    flavor = flavor_of(reservation)
    return lambda world, _: world.compute.make_flavor(flavor)


def creation(reservation: Reservation) -> list[Step]:
    """Return the steps that a reservation needs before it starts."""
    return [create_class(reservation.resource_class), make_flavor(reservation)]


def start(
    reservation: Reservation, slots: Mapping[str, int], project_id: str
) -> list[Step]:
    """Return the steps that let a project use a reservation.

    :param slots: how many, keyed by host name
    """
    return [
        # Both exist already, unless another client has removed them.
        *creation(reservation),
        *inventories(reservation, slots),
        lambda world, _: world.compute.give_access(reservation.id, project_id),
    ]


def inventories(reservation: Reservation, slots: Mapping[str, int]) -> list[Step]:
    """Return the steps that give reservation providers the slots of a reservation."""
    name = reservation.resource_class
    return [
        set_inventory(host, name, total) if total else remove_inventory(host, name)
        for host, total in slots.items()
    ]


def end(reservation: Reservation, hosts: Iterable[str], project_id: str) -> list[Step]:
    """Return the steps that remove a reservation that was started, and its servers."""
    name, hosts = reservation.resource_class, tuple(hosts)

    def delete_servers(world: World, go_on: GoOn) -> None:
        for server in world.compute.list_servers_of(reservation, hosts, go_on):
            go_on()
            world.compute.delete_server(server)
        go_on()
        left = world.compute.list_servers_of(reservation, hosts, go_on)
        if left:
            raise StillInUse(f"servers {', '.join(left)} are still there")

    return [
        lambda world, _: world.compute.take_access(reservation.id, project_id),
        delete_servers,
        lambda world, _: world.compute.delete_flavor(reservation.id),
        *(remove_inventory(host, name) for host in hosts),
        _delete_class(name),
    ]


def removal(flavor_id: str, resource_class: str) -> list[Step]:
    """Return the steps that remove a reservation that was never started."""
    return [
        lambda world, _: world.compute.delete_flavor(flavor_id),
        _delete_class(resource_class),
    ]


def _path(name: str) -> str:
    return path_of("resource_classes", name)


def create_class(name: str) -> Step:
    """Make sure that a resource class exists."""
    return lambda world, _: world.placement.put(_path(name), version="1.7")


def _delete_class(name: str) -> Step:
    def delete_class(world: World, go_on: GoOn) -> None:
        with provider.MayBeGone():
            world.placement.delete(_path(name), version=provider.VERSION)

    return delete_class


def set_inventory(host: str, name: str, total: int) -> Step:
    """Set how much the reservation provider of a host has of a resource class."""
    return lambda world, _: provider.set_total(world.placement, host, name, total)


def remove_inventory(host: str, name: str) -> Step:
    """Remove a resource class from the reservation provider of a host."""
    return lambda world, _: provider.remove_class(world.placement, host, name)


def addition(host: str, provider_uuid: str) -> list[Step]:
    """Return the steps that a host needs before its capacity can be reserved."""
    return [
        lambda world, _: provider.create(world.placement, host, provider_uuid),
        lambda world, _: world.compute.join_pool(host),
    ]


def restoration(host: str) -> list[Step]:
    """Return the steps that give a reservable host what it has lost."""
    return [
        lambda world, _: provider.ensure(world.placement, host),
        lambda world, _: world.compute.join_pool(host),
    ]


def subtraction(host: str, provider_uuid: str | None = None) -> list[Step]:
    """Return the steps that turn a host into an ordinary one again.

    Given a UUID, only if the host has no reservation provider but that one.
    """

    def leave_pool(world: World, go_on: GoOn) -> None:
        if not provider.is_another(world.placement, host, provider_uuid):
            world.compute.leave_pool(host)

    return [
        leave_pool,
        lambda world, _: provider.delete(world.placement, host, provider_uuid),
    ]

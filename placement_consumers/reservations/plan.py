"""What has to be done in Placement and to flavors: plans of steps, as plain values.

A plan is made from what the tables say. Each step may be done again, and by another
process than the one that did those before it.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from placement_consumers.reservations.store.flavor import Flavor
from placement_consumers.reservations.store.lease import Reservation


@dataclasses.dataclass(frozen=True, slots=True)
class CreateClass:
    """Let a resource class exist."""

    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteClass:
    """Let a resource class not exist."""

    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class MakeFlavor:
    """Let a flavor be as it is said to be; nobody is given access to it."""

    flavor: Flavor


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteFlavor:
    """Let a flavor not exist."""

    flavor_id: str


@dataclasses.dataclass(frozen=True, slots=True)
class GiveAccess:
    """Let a project use a flavor."""

    flavor_id: str
    project_id: str


@dataclasses.dataclass(frozen=True, slots=True)
class TakeAccess:
    """Let a project not use a flavor."""

    flavor_id: str
    project_id: str


@dataclasses.dataclass(frozen=True, slots=True)
class SetInventory:
    """Let the reservation provider of a host have so much of a resource class."""

    host: str
    resource_class: str
    total: int


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveInventory:
    """Let the reservation provider of a host have nothing of a resource class."""

    host: str
    resource_class: str


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteServers:
    """Let no server use a reservation on some hosts."""

    flavor_id: str
    resource_class: str
    hosts: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class CreateProvider:
    """Let a host have a reservation provider, which it must not have had."""

    host: str
    uuid: str


@dataclasses.dataclass(frozen=True, slots=True)
class EnsureProvider:
    """Let a host have a reservation provider."""

    host: str


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteProvider:
    """Let a host have no reservation provider; with a UUID, not that one."""

    host: str
    uuid: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class JoinPool:
    """Keep ordinary instances away from a host."""

    host: str


@dataclasses.dataclass(frozen=True, slots=True)
class LeavePool:
    """Let a host be as all others are."""

    host: str


Step: TypeAlias = (
    CreateClass
    | DeleteClass
    | MakeFlavor
    | DeleteFlavor
    | GiveAccess
    | TakeAccess
    | SetInventory
    | RemoveInventory
    | DeleteServers
    | CreateProvider
    | EnsureProvider
    | DeleteProvider
    | JoinPool
    | LeavePool
)


def flavor_of(reservation: Reservation) -> Flavor:
    """Return what the instances of a reservation are like."""
    return Flavor(reservation.id, reservation.wish.size, reservation.resource_class)


def creation(reservation: Reservation) -> list[Step]:
    """Return what a reservation needs before it starts."""
    return [
        CreateClass(reservation.resource_class),
        MakeFlavor(flavor_of(reservation)),
    ]


def start(
    reservation: Reservation, slots: Mapping[str, int], project_id: str
) -> list[Step]:
    """Return what lets a project use a reservation.

    :param slots: how many, keyed by the name of the host
    """
    return [
        *inventories(reservation, slots),
        GiveAccess(reservation.id, project_id),
    ]


def inventories(reservation: Reservation, slots: Mapping[str, int]) -> list[Step]:
    """Return what lets reservation providers have the slots of a reservation."""
    return [
        SetInventory(host, reservation.resource_class, total)
        if total
        else RemoveInventory(host, reservation.resource_class)
        for host, total in slots.items()
    ]


def end(reservation: Reservation, hosts: Iterable[str], project_id: str) -> list[Step]:
    """Return what removes a reservation that was started, and all that uses it."""
    name = reservation.resource_class
    hosts = tuple(hosts)
    return [
        TakeAccess(reservation.id, project_id),
        DeleteServers(reservation.id, name, hosts),
        DeleteFlavor(reservation.id),
        *(RemoveInventory(host, name) for host in hosts),
        DeleteClass(name),
    ]


def removal(flavor_id: str, resource_class: str) -> list[Step]:
    """Return what removes a reservation that was never started."""
    return [DeleteFlavor(flavor_id), DeleteClass(resource_class)]


def addition(host: str, provider_uuid: str) -> list[Step]:
    """Return what a host needs before its room can be reserved."""
    return [CreateProvider(host, provider_uuid), JoinPool(host)]


def subtraction(host: str, provider_uuid: str | None = None) -> list[Step]:
    """Return what lets a host be as all others are."""
    return [LeavePool(host), DeleteProvider(host, provider_uuid)]

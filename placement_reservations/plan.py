"""Plans: the steps to do in Placement and for flavors, as plain values.

A plan is made from the tables. Each step may be repeated, and may be executed by
another process than the steps before it.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from placement_reservations.store.flavor import Flavor
from placement_reservations.store.lease import Reservation


@dataclasses.dataclass(frozen=True, slots=True)
class CreateClass:
    """Make sure that a resource class exists."""

    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteClass:
    """Make sure that a resource class does not exist."""

    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class MakeFlavor:
    """Make sure that a flavor exists, to which no project has access yet."""

    flavor: Flavor


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteFlavor:
    """Make sure that a flavor does not exist."""

    flavor_id: str


@dataclasses.dataclass(frozen=True, slots=True)
class GiveAccess:
    """Give a project access to a flavor."""

    flavor_id: str
    project_id: str


@dataclasses.dataclass(frozen=True, slots=True)
class TakeAccess:
    """Take access to a flavor from a project."""

    flavor_id: str
    project_id: str


@dataclasses.dataclass(frozen=True, slots=True)
class SetInventory:
    """Set how much the reservation provider of a host has of a resource class."""

    host: str
    resource_class: str
    total: int


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveInventory:
    """Remove a resource class from the reservation provider of a host."""

    host: str
    resource_class: str


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteServers:
    """Delete all servers that use a reservation on some hosts."""

    flavor_id: str
    resource_class: str
    hosts: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class CreateProvider:
    """Create the reservation provider of a host, which must not have one."""

    host: str
    uuid: str


@dataclasses.dataclass(frozen=True, slots=True)
class EnsureProvider:
    """Make sure that a host has a reservation provider."""

    host: str


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteProvider:
    """Delete the reservation provider of a host; given a UUID, only that one."""

    host: str
    uuid: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class JoinPool:
    """Keep ordinary instances away from a host."""

    host: str


@dataclasses.dataclass(frozen=True, slots=True)
class LeavePool:
    """Admit ordinary instances to a host again.

    Given a UUID, only if the host has no reservation provider but that one.
    """

    host: str
    uuid: str | None = None


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
    """Return the flavor for the instances of a reservation."""
    return Flavor(reservation.id, reservation.wish.size, reservation.resource_class)


def creation(reservation: Reservation) -> list[Step]:
    """Return the steps that a reservation needs before it starts."""
    return [
        CreateClass(reservation.resource_class),
        MakeFlavor(flavor_of(reservation)),
    ]


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
        GiveAccess(reservation.id, project_id),
    ]


def inventories(reservation: Reservation, slots: Mapping[str, int]) -> list[Step]:
    """Return the steps that give reservation providers the slots of a reservation."""
    return [
        SetInventory(host, reservation.resource_class, total)
        if total
        else RemoveInventory(host, reservation.resource_class)
        for host, total in slots.items()
    ]


def end(reservation: Reservation, hosts: Iterable[str], project_id: str) -> list[Step]:
    """Return the steps that remove a reservation that was started, and its servers."""
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
    """Return the steps that remove a reservation that was never started."""
    return [DeleteFlavor(flavor_id), DeleteClass(resource_class)]


def addition(host: str, provider_uuid: str) -> list[Step]:
    """Return the steps that a host needs before its capacity can be reserved."""
    return [CreateProvider(host, provider_uuid), JoinPool(host)]


def subtraction(host: str, provider_uuid: str | None = None) -> list[Step]:
    """Return the steps that turn a host into an ordinary one again."""
    return [LeavePool(host, provider_uuid), DeleteProvider(host, provider_uuid)]

"""Flavors that this service shows if no other service stores flavors."""

import dataclasses

import sqlalchemy as sa

from placement_foundation import errors
from placement_reservations.capacity import Size
from placement_reservations.db import models
from placement_reservations.store import row
from placement_reservations.store.lease import Reservation


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    """The flavor of the instances of a reservation, and its id."""

    id: str
    size: Size
    resource_class: str

    @property
    def name(self) -> str:
        """Return the name of the flavor."""
        return f"reservation:{self.id}"

    @property
    def extra_specs(self) -> dict[str, str]:
        """Return its extra specs."""
        return {f"resources:{self.resource_class}": "1"}


def flavor_of(reservation: Reservation) -> Flavor:
    """Return the flavor for the instances of a reservation."""
    return Flavor(reservation.id, reservation.wish.size, reservation.resource_class)


def list_flavors(
    connection: sa.Connection, project_id: str | None = None
) -> list[Flavor]:
    """Return flavors by id.

    :param project_id: the project with access to them; None means all flavors
    """
    table = models.Flavor
    query = sa.select(table).order_by(table.id)
    if project_id is not None:
        query = query.where(table.project_id == project_id)
    return [
        Flavor(each.id, Size(each.vcpus, each.ram, each.disk), each.resource_class)
        for each in connection.execute(query)
    ]


def get(
    connection: sa.Connection, flavor_id: str, project_id: str | None = None
) -> Flavor:
    """Return a flavor.

    :param project_id: the project that must have access to it; None for administrators
    :raises NotFound: there is no such flavor for that project
    """
    for flavor in list_flavors(connection, project_id):
        if flavor.id == flavor_id:
            return flavor
    raise errors.NotFound(f"Object with {{'flavor_id': '{flavor_id}'}} not found")


def put(connection: sa.Connection, flavor: Flavor) -> None:
    """Store a flavor, replacing the one with the same id if there is one."""
    row.put(
        connection,
        models.Flavor,
        {"id": flavor.id},
        name=flavor.name,
        vcpus=flavor.size.vcpus,
        ram=flavor.size.memory_mb,
        disk=flavor.size.disk_gb,
        resource_class=flavor.resource_class,
    )


def set_project(
    connection: sa.Connection, flavor_id: str, project_id: str | None
) -> None:
    """Give a project access to a flavor; None takes access away."""
    table = models.Flavor
    connection.execute(
        sa.update(table).where(table.id == flavor_id).values(project_id=project_id)
    )


def delete(connection: sa.Connection, flavor_id: str) -> None:
    """Delete a flavor if it exists."""
    connection.execute(sa.delete(models.Flavor).where(models.Flavor.id == flavor_id))

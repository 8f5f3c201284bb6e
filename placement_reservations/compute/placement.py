"""Without a compute service: hosts and servers as Placement has them.

A server is a consumer with allocations. Flavors are rows of our own tables.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Self

from placement_clients.client import Client, path_of
from placement_clients.record import AGGREGATES, TRAITS
from placement_foundation.database.storage import Database
from placement_reservations import provider
from placement_reservations.store import flavor as flavors
from placement_reservations.store.flavor import Flavor
from placement_reservations.store.host import Details
from placement_reservations.store.lease import Reservation

DISABLED = "COMPUTE_STATUS_DISABLED"


@dataclasses.dataclass(frozen=True, slots=True)
class PlacementCompute:
    """Hosts are root providers.

    :param pool: the aggregate of reservable hosts
    :param use_ratio: whether allocation ratios above one count
    """

    database: Database
    placement: Client
    pool: str
    use_ratio: bool = False

    def for_request(self, request_id: str | None) -> Self:
        """Return this service on behalf of an inbound request."""
        client = self.placement.for_request(request_id)
        return dataclasses.replace(self, placement=client)

    def find_host(self, name: str) -> Details | None:
        """Return the details of a host, None if there is no host with that name."""
        root = provider.find_root(self.placement, name)
        if root is None:
            return None
        with provider.MayBeGone():
            traits = self.placement.get_part(root.uuid, TRAITS).value
            size, limits = provider.get_size(
                self.placement, root, use_ratio=self.use_ratio
            )
            available = DISABLED not in traits
            return Details(name, size, available, name, limits=limits)
        return None

    def list_servers_on(self, host: str) -> list[str]:
        """Return the ids of the servers that run on a host."""
        root = provider.find_root(self.placement, host)
        return provider.list_consumers(self.placement, root)

    def make_flavor(self, flavor: Flavor) -> None:
        """Make sure that a flavor exists with the given properties."""
        self.database.write(lambda connection: flavors.put(connection, flavor))

    def delete_flavor(self, flavor_id: str) -> None:
        """Make sure that a flavor does not exist."""
        self.database.write(lambda connection: flavors.delete(connection, flavor_id))

    def give_access(self, flavor_id: str, project_id: str) -> None:
        """Give a project access to a flavor."""
        self._set_project(flavor_id, project_id)

    def take_access(self, flavor_id: str, project_id: str) -> None:
        """Take access to a flavor from a project, if the flavor exists."""
        self._set_project(flavor_id, None)

    def _set_project(self, flavor_id: str, project_id: str | None) -> None:
        self.database.write(
            lambda connection: flavors.set_project(connection, flavor_id, project_id)
        )

    def list_servers_of(
        self, reservation: Reservation, hosts: Sequence[str], go_on: Callable[[], None]
    ) -> list[str]:
        """Return the ids of the servers of a reservation.

        :param go_on: called before each host
        """
        servers: list[str] = []
        for host in hosts:
            go_on()
            child = provider.find_named(self.placement, host)
            servers += provider.list_consumers(
                self.placement, child, reservation.resource_class
            )
        return servers

    def delete_server(self, server: str) -> None:
        """Delete a server by removing all its allocations."""
        with provider.MayBeGone():
            self.placement.delete(path_of("allocations", server), version="1.0")

    def join_pool(self, host: str) -> None:
        """Add a host to the pool of reservable hosts."""
        root = provider.get_root(self.placement, host)
        self.placement.change(root.uuid, AGGREGATES, lambda uuids: uuids | {self.pool})

    def list_pool(self) -> set[str]:
        """Return the hosts in the pool of reservable hosts: names of their services."""
        providers = self.placement.list_providers(
            member_of=f"in:{self.pool}", version=provider.VERSION
        )
        return {each.name for each in providers}

    def leave_pool(self, host: str) -> None:
        """Remove a host from the pool of reservable hosts."""
        root = provider.find_root(self.placement, host)
        if root:
            self.placement.change(
                root.uuid, AGGREGATES, lambda uuids: uuids - {self.pool}
            )

"""What runs instances: hosts, servers, flavors, and the pool of reservable hosts."""

from collections.abc import Sequence
from typing import Protocol, Self

from placement_consumers.reservations.store.flavor import Flavor
from placement_consumers.reservations.store.host import Details


class ComputeError(Exception):
    """The compute service did not do what it was asked."""


class Compute(Protocol):
    """What this service needs of a compute service.

    Everything may be done again: what is to be removed may be gone, and what is to be
    made may be there.

    :raises ComputeError: the compute service cannot do it, or be reached
    :raises placement_consumers.errors.PlacementError: Placement cannot
    """

    def for_request(self, request_id: str | None) -> Self:
        """Return this as it acts for an inbound request."""

    def find_host(self, name: str) -> Details | None:
        """Return what is known of a host, None if there is none of that name."""

    def list_servers_on(self, host: str) -> list[str]:
        """Return the ids of the servers that run on a host."""

    def make_flavor(self, flavor: Flavor) -> None:
        """Let a flavor be as it is said to be."""

    def delete_flavor(self, flavor_id: str) -> None:
        """Let a flavor not exist."""

    def give_access(self, flavor_id: str, project_id: str) -> None:
        """Let a project use a flavor."""

    def take_access(self, flavor_id: str, project_id: str) -> None:
        """Let a project not use a flavor, if there is one."""

    def list_servers_of(
        self, flavor_id: str, resource_class: str, hosts: Sequence[str]
    ) -> list[str]:
        """Return the ids of the servers of a reservation."""

    def delete_server(self, server: str) -> None:
        """Begin to delete a server."""

    def join_pool(self, host: str) -> None:
        """Put a host into the pool of reservable hosts."""

    def leave_pool(self, host: str) -> None:
        """Take a host out of the pool of reservable hosts."""

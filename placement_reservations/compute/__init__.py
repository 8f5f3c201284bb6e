"""The compute service: hosts, servers, flavors, and the pool of reservable hosts."""

from collections.abc import Callable, Sequence
from typing import Protocol, Self

from placement_reservations.errors import Failure
from placement_reservations.store.flavor import Flavor
from placement_reservations.store.host import Details
from placement_reservations.store.lease import Reservation


class ComputeError(Failure):
    """The compute service did not carry out a request."""

    def __init__(self, message: str, *, may_pass: bool = True) -> None:
        super().__init__(message)
        self.may_pass = may_pass


class Compute(Protocol):
    """What this service needs from a compute service.

    Every operation may be repeated: the thing to remove may be gone already, and the
    thing to create may already exist.

    :raises ComputeError: the compute service cannot do it, or cannot be reached
    :raises placement_clients.errors.PlacementError: Placement cannot do it, or cannot
        be reached
    """

    def for_request(self, request_id: str | None) -> Self:
        """Return this service on behalf of an inbound request."""

    def find_host(self, name: str) -> Details | None:
        """Return the details of a host, None if there is no host with that name."""

    def list_servers_on(self, host: str) -> list[str]:
        """Return the ids of the servers that run on a host."""

    def make_flavor(self, flavor: Flavor) -> None:
        """Make sure that a flavor exists with the given properties."""

    def delete_flavor(self, flavor_id: str) -> None:
        """Make sure that a flavor does not exist."""

    def give_access(self, flavor_id: str, project_id: str) -> None:
        """Give a project access to a flavor."""

    def take_access(self, flavor_id: str, project_id: str) -> None:
        """Take access to a flavor from a project, if the flavor exists."""

    def list_servers_of(
        self, reservation: Reservation, hosts: Sequence[str], go_on: Callable[[], None]
    ) -> list[str]:
        """Return the ids of the servers of a reservation.

        :param go_on: called before each host, if there is a request for each
        """

    def delete_server(self, server: str) -> None:
        """Start to delete a server."""

    def join_pool(self, host: str) -> None:
        """Add a host to the pool of reservable hosts."""

    def list_pool(self) -> set[str]:
        """Return the hosts in the pool of reservable hosts: names of their services."""

    def leave_pool(self, host: str) -> None:
        """Remove a host from the pool of reservable hosts."""

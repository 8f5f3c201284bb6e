"""Reservations of hosts: a claim of a reserved slot ends with its reservation."""

from collections.abc import Iterator

from placement_clients.audit.life import Claim, Living, NotAnswered, Source
from placement_clients.client import Client
from placement_clients.errors import PlacementError

CLASS = "CUSTOM_RESERVATION_"
OVER = ("deleted",)
LEASE_OVER = ("TERMINATED",)


class Reservations(Source):
    """The reservations that are not over; it does not judge other claims.

    :param service: answers ``/leases`` as Blazar does
    """

    name = "reservations"
    lists_consumers = False

    def __init__(self, service: Client) -> None:
        self._service = service
        self._classes: set[str] = set()

    def living(self) -> Iterator[Living]:
        """Read the reservations; they have no consumers of their own.

        :raises NotAnswered: they cannot be read
        """
        try:
            leases = self._service.get("/leases", version="1.0")["leases"]
            self._classes = {
                f"{CLASS}{each['id'].upper().replace('-', '_')}"
                for lease in leases
                if lease["status"] not in LEASE_OVER
                for each in lease["reservations"]
                if each["status"] not in OVER
            }
        except PlacementError as exc:
            raise NotAnswered(f"reservations could not be listed: {exc}") from exc
        except (KeyError, TypeError, AttributeError) as exc:
            raise NotAnswered("the answer is not a list of leases") from exc
        yield from ()

    def knows(self, claim: Claim) -> bool:
        """Return whether a claim is one of reserved slots."""
        is_reserved = any(name.startswith(CLASS) for name in claim.totals)
        return is_reserved and super().knows(claim)

    def keeps(self, claim: Claim) -> bool:
        """Return whether a claim has a slot that is reserved now."""
        return not self._classes.isdisjoint(claim.totals)

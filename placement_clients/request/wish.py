"""How servers that are booted together are spread, and which hosts they prefer."""

import dataclasses
from collections.abc import Iterator

from placement_clients.record import Json

HOST = "host"


@dataclasses.dataclass(frozen=True, slots=True)
class Preference:
    """A quality of hosts, and how much it counts; a negative weight is a dislike.

    ``quality`` is ``trait``, ``aggregate``, ``host`` or ``free``; ``name`` is that of a
    trait or of a resource class, or a UUID.
    """

    quality: str
    name: str
    weight: float = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for besides the resources of each server.

    At most ``at_most`` of the servers are in one domain of ``spread``: each host
    (``host``), or each of some aggregates, given by UUID; None is no bound. With
    ``lease_seconds``, what is claimed ends by itself after that time.
    """

    spread: str | tuple[str, ...] | None = None
    at_most: int = 1
    prefer: tuple[Preference, ...] = ()
    lease_seconds: int | None = None

    @property
    def members(self) -> dict[str, Json]:
        """The members that it adds to a request for placements."""
        return dict(self._members())

    def _members(self) -> Iterator[tuple[str, Json]]:
        if self.spread is not None:
            aggregates = {"aggregates": list(self.spread)}
            per = HOST if self.spread == HOST else aggregates
            yield "spread", {"per": per, "at_most": self.at_most}
        if self.prefer:
            listed = [
                {each.quality: each.name, "weight": each.weight} for each in self.prefer
            ]
            yield "prefer", listed
        if self.lease_seconds is not None:
            yield "lease_seconds", self.lease_seconds

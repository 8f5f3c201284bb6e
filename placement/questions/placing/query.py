"""The query of a request for placements."""

import dataclasses
import enum

from placement.model.request import Request


@dataclasses.dataclass(frozen=True, slots=True)
class Domains:
    """What counts as one domain: each of some aggregates, or each host if None."""

    aggregates: tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Spread:
    """A bound on how many consumers one domain takes.

    ``beside`` are consumers of earlier requests that count as well.
    """

    domains: Domains
    at_most: int
    beside: tuple[str, ...] = ()


class Quality(enum.Enum):
    """The subject of a preference."""

    TRAIT = "trait"
    AGGREGATE = "aggregate"
    HOST = "host"
    FREE = "free"


@dataclasses.dataclass(frozen=True, slots=True)
class Preference:
    """A quality of hosts, and how much it counts; a negative weight is a dislike.

    ``name`` is that of a trait or a resource class, or the UUID of an aggregate or
    host.
    """

    quality: Quality
    name: str
    weight: float


@dataclasses.dataclass(frozen=True, slots=True)
class Wish:
    """The needs of every consumer of a request, and how consumers lie to each other.

    With ``prefer``, so many hosts are considered for each consumer; otherwise the first
    that fits is taken.
    """

    request: Request
    spread: Spread | None = None
    together: Domains | None = None
    prefer: tuple[Preference, ...] = ()
    consider: int = 500

    @property
    def class_names(self) -> set[str]:
        """The resource classes that each consumer uses."""
        return {name for group in self.request.groups for name in group.resources}

    @property
    def names_all(self) -> bool:
        """Whether it is also about trees that the query alone does not need."""
        return bool(self.spread or self.together or self.prefer)

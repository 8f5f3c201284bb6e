"""A request for placements, and its result."""

import dataclasses
import enum
from collections.abc import Mapping
from typing import TypeAlias

from placement.model.request import Request

# The amounts of a candidate, by UUID of the provider and by resource class.
Amounts: TypeAlias = Mapping[str, Mapping[str, int]]


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


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    """A request for placements: the consumers, and the wish of each of them."""

    wish: Wish
    consumers: tuple[str, ...]
    project_id: str
    user_id: str
    consumer_type: str
    at_least: int
    lease_seconds: int | None
    dry_run: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
    """A consumer that has been placed.

    ``mappings`` and the score are None if it ``existed`` already; so is the generation
    in a dry run. ``expires_at`` is in milliseconds since 1970.
    """

    consumer: str
    host: str | None
    name: str | None
    existed: bool
    amounts: Amounts
    mappings: Mapping[str, tuple[str, ...]] | None
    score: float | None
    generation: int | None
    expires_at: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Placements:
    """The result of a request: placements in its order, and those without room."""

    placements: tuple[Placement, ...]
    unplaced: tuple[str, ...]
    considered: int
    exact: bool
    dry_run: bool

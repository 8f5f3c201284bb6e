"""A request for placements, and its result."""

import dataclasses
from collections.abc import Mapping

from placement.questions.placing.overlay import Amounts
from placement.questions.placing.query import Wish


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

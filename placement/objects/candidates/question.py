"""What is asked for, and in which order answers come."""

import dataclasses

from placement import conf
from placement.search.budget import Limits
from placement.search.engine import Candidate
from placement.search.model import Provider, Request


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """What is asked: for which candidates, and for how many at most."""

    request: Request
    limit: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    """In which order candidates come, and how many are made: None means all.

    ``limits`` are those of the work that may be done for them.
    """

    depth_first: bool = False
    shuffled: bool = False
    most: int | None = None
    limits: Limits = dataclasses.field(default_factory=Limits)


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """Candidates, the providers to describe, and the classes that were asked for."""

    candidates: tuple[Candidate, ...]
    providers: tuple[Provider, ...]
    resource_classes: frozenset[str]


NOTHING = Answer((), (), frozenset())


def order_of(settings: conf.Settings) -> Order:
    """Return the order that the options say."""
    most = settings.max_allocation_candidates
    return Order(
        settings.allocation_candidates_generation_strategy == "depth-first",
        settings.randomize_allocation_candidates,
        None if most < 0 else max(most, 1),
        Limits(settings.search_picks_per_anchor, settings.search_picks),
    )

"""The question for candidates, the order of answers, and the answer."""

import dataclasses

from placement import conf
from placement.model.request import Request
from placement.model.tree import Provider
from placement.search.budget import Limits
from placement.search.engine import Candidate


@dataclasses.dataclass(frozen=True, slots=True)
class CandidateQuery:
    """A request for candidates, and how many to return at most."""

    request: Request
    limit: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class CandidateOrder:
    """The order of candidates, and how many are generated: None means all.

    ``limits`` bound the work that may be done for them.
    """

    depth_first: bool = False
    shuffled: bool = False
    most: int | None = None
    limits: Limits = dataclasses.field(default_factory=Limits)


@dataclasses.dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates, the providers to summarise, and the requested resource classes.

    ``summarised`` has the providers of each tree together from 1.29 on; before, each by
    itself.
    """

    candidates: tuple[Candidate, ...]
    summarised: tuple[tuple[Provider, ...], ...]
    resource_classes: frozenset[str]


NOTHING = Candidates((), (), frozenset())


def order_of(settings: conf.Settings) -> CandidateOrder:
    """Return the order that the options set."""
    most = settings.max_allocation_candidates
    return CandidateOrder(
        settings.allocation_candidates_generation_strategy == "depth-first",
        settings.randomize_allocation_candidates,
        None if most < 0 else max(most, 1),
        Limits(settings.search_picks_per_anchor, settings.search_picks),
    )

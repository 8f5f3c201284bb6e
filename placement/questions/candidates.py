"""Candidates for a request. Nothing here needs the database."""

import dataclasses
import itertools
import random
from collections.abc import Iterable, Sequence

from oslo_log import log

from placement import conf, errors, measure
from placement.forest.forest import Forest
from placement.model.request import Request
from placement.model.tree import Provider, Snapshot
from placement.questions import name
from placement.search import engine
from placement.search.engine import Candidate
from placement.search.search import Limits, Tally
from placement_foundation.observing import telemetry

LOG = log.getLogger(__name__)
# How many of the groups that made a search hard are named.
MOST_NAMED = 5


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
    """Candidates, the providers to summarise, and the requested resource classes."""

    candidates: tuple[Candidate, ...]
    summarised: tuple[Provider, ...]
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


@telemetry.timed("search")
def answer(
    forest: Forest, question: CandidateQuery, order: CandidateOrder
) -> Candidates:
    """Return ways to serve all request groups together, and the providers in them.

    :raises BadRequest: a trait or resource class does not exist, unless the answer is
        known to be empty anyway
    :raises SearchExhausted: nothing was found, but not everything was searched
    """
    request = question.request
    if not name.are_known(request, forest.vocabulary):
        name.check(request, forest.vocabulary, forest.everything)
        return NOTHING
    relevant = forest.relevant(request)
    candidates = find(relevant, question, order)
    return Candidates(
        candidates=tuple(candidates),
        summarised=tuple(_list_summarised(candidates, relevant, request)),
        resource_classes=frozenset().union(
            *(group.resources for group in request.groups)
        ),
    )


def find(
    snapshot: Snapshot, question: CandidateQuery, order: CandidateOrder
) -> list[Candidate]:
    """Return candidates for a request, up to its limit, in the given order.

    :raises SearchExhausted: nothing was found, but not everything was searched
    """
    shuffle = random.Random() if order.shuffled else None
    tally = Tally()
    candidates = engine.search(
        snapshot,
        question.request,
        depth_first=order.depth_first,
        shuffle=shuffle,
        most=order.most,
        tally=tally,
        limits=order.limits,
    )
    listed = list(itertools.islice(candidates, question.limit))
    telemetry.record(measure.CANDIDATE_HOSTS, tally.anchors)
    telemetry.record(measure.CANDIDATE_ANSWERS, len(listed))
    _report(tally, len(listed))
    if shuffle:
        shuffle.shuffle(listed)
    return listed


def _report(tally: Tally, found: int) -> None:
    """Log if a search reached a limit of its budget.

    :raises SearchExhausted: it had found nothing by then
    """
    if not tally.exhausted and not tally.pauses:
        return
    hard = ", ".join(suffix or "without suffix" for suffix in tally.hardest(MOST_NAMED))
    if tally.exhausted:
        telemetry.record(measure.SEARCHES_CUT)
        LOG.warning(
            "[placement] search_picks ended a search for allocation candidates: %d "
            "found, there may be more; turns cut short: %d; groups hard to satisfy: %s",
            found,
            tally.pauses,
            hard or "none",
        )
    else:
        LOG.info(
            "[placement] search_picks_per_anchor cut %d turns short in a search for "
            "allocation candidates, which found all: %d",
            tally.pauses,
            found,
        )
    if tally.exhausted and not found:
        raise errors.SearchExhausted(
            "It is not known whether there are allocation candidates: the search was "
            "ended before it had looked at all combinations. These request groups are "
            f"hard to satisfy together: {hard}."
        )


def _list_summarised(
    candidates: Sequence[Candidate], snapshot: Snapshot, request: Request
) -> Iterable[Provider]:
    """Return the providers to describe: from 1.29, whole trees of those that serve."""
    used = dict.fromkeys(engine.used_by(candidates))
    if not request.nested:
        return used
    summarised: list[Provider] = []
    for root_uuid, each in {each.root_uuid: each for each in used}.items():
        if each.end == 1:  # It is the only member of its tree.
            summarised.append(each)
        else:
            summarised += snapshot.tree_by_uuid[root_uuid].members
    return summarised

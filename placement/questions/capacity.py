"""Counting how many times a request could be claimed. Needs no database."""

import dataclasses
import math
import time
from collections.abc import Callable

from placement.forest.forest import Forest
from placement.model.request import Request
from placement.model.tree import Snapshot, Tree
from placement.questions import name
from placement.questions.explanation.alike import kinds_of
from placement.questions.explanation.survey import Deadline
from placement.questions.overlay import Overlay
from placement.search.search import Budget, Limits


@dataclasses.dataclass(frozen=True, slots=True)
class CapacityQuery:
    """A request to count: up to ``most`` for each host, listed for ``most_hosts``.

    It may take so many ``seconds``.
    """

    request: Request
    most: int = 100_000
    most_hosts: int = 100
    seconds: float = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Count:
    """How many times one host can be claimed, and whether that is known to be exact."""

    tree: Tree
    count: int
    exact: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Capacity:
    """How many times a request could be claimed; ``hosts`` has the best hosts.

    It is ``exact`` if it is known that no more claims fit, and not ``complete`` if time
    or budget ran out: some hosts were not counted then, or not to their end.
    """

    total: int
    exact: bool
    complete: bool
    hosts: tuple[Count, ...]


class Effort:
    """How much counting may take: seconds, and picks of the search for all hosts.

    ``is_cut`` says that this was not enough.
    """

    def __init__(
        self,
        seconds: float = math.inf,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._deadline = Deadline(seconds, clock)
        self.budget = Budget(limits)
        self.is_cut = False

    def is_spent(self) -> bool:
        """Return whether the effort is used up although there is work left."""
        spent = self._deadline.has_come() or self.budget.is_used_up
        self.is_cut |= spent
        return spent


def count(
    forest: Forest, question: CapacityQuery, limits: Limits | None = None
) -> Capacity:
    """Return how many times a request could be claimed.

    :param limits: the budget of the search; None means the default one
    :raises BadRequest: a trait or resource class does not exist
    """
    request, everything = question.request, forest.everything
    name.check_all(request, forest.vocabulary)
    effort = Effort(question.seconds, limits)
    counts = count_all(everything, request, question.most, effort)
    serving = [each for each in counts if each.count]
    serving.sort(key=lambda each: (-each.count, each.tree.root.name or ""))
    return Capacity(
        sum(each.count for each in counts),
        not effort.is_cut and all(each.exact for each in counts),
        not effort.is_cut,
        tuple(serving[: question.most_hosts]),
    )


def count_all(
    snapshot: Snapshot, request: Request, most: int, effort: Effort
) -> list[Count]:
    """Return how many times each host can be claimed, in the order of the snapshot.

    Hosts are missing if the effort is cut; the counts of the others are lower bounds.

    :param most: where counting stops for each host
    """
    here = Overlay(snapshot, request, lambda: effort.budget)
    counted: dict[Tree, Count] = {}
    dependent: set[Tree] = set()
    for kind in kinds_of(snapshot, request, exactly=True):
        if effort.is_spent():
            break
        if not here.is_by_itself(kind.example):
            dependent.update(kind.trees)
            continue
        found = _count(here.afresh(), kind.example, most, effort)
        for tree in kind.trees:
            counted[tree] = dataclasses.replace(found, tree=tree)
    here.afresh()
    # What these take from a provider that shares is not left for the others.
    for tree in snapshot.trees:
        if tree in dependent and not effort.is_spent():
            counted[tree] = _count(here, tree, most, effort)
    return [counted[tree] for tree in snapshot.trees if tree in counted]


def _count(here: Overlay, tree: Tree, most: int, effort: Effort) -> Count:
    """Claim the first candidate of a host until there is none."""
    times, candidate, decided = 0, None, False
    while not effort.is_spent():
        candidate, decided = here.first(tree)
        if candidate is None or times == most:
            break
        taken = candidate.amounts()
        more = min(here.times(taken), most - times)
        here.take(taken, more)
        times += more
    # Whether more than the most would fit is nothing that has to be known.
    effort.is_cut |= candidate is None and not decided and times < most
    is_full = candidate is None and decided
    return Count(tree, times, is_full and (not times or here.is_certain(tree)))

"""Counting how many times a request could be claimed. Needs no database."""

import dataclasses

from placement.forest.forest import Forest
from placement.model.request import Request
from placement.questions import counting, name
from placement.questions.counting import Count, Effort
from placement.search.search import Limits


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
class Capacity:
    """How many times a request could be claimed; ``hosts`` has the best hosts.

    It is ``exact`` if it is known that no more claims fit, and not ``complete`` if time
    or budget ran out: some hosts were not counted then, or not to their end.
    """

    total: int
    exact: bool
    complete: bool
    hosts: tuple[Count, ...]


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
    counts = counting.count_all(everything, request, question.most, effort)
    serving = [each for each in counts if each.count]
    serving.sort(key=lambda each: (-each.count, each.tree.root.name or ""))
    return Capacity(
        sum(each.count for each in counts),
        not effort.is_cut and all(each.exact for each in counts),
        not effort.is_cut,
        tuple(serving[: question.most_hosts]),
    )

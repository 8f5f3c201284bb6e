"""Counting how many times a request could be claimed. Needs no database."""

import dataclasses

from placement.forest.forest import Forest
from placement.model.request import Request
from placement.questions import counting, name
from placement.questions.counting import Count


@dataclasses.dataclass(frozen=True, slots=True)
class CapacityQuery:
    """A request to count: up to ``most`` for each host, listed for ``most_hosts``."""

    request: Request
    most: int = 100_000
    most_hosts: int = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Capacity:
    """How many times a request could be claimed; ``hosts`` has the best hosts.

    It is ``exact`` if it is known that no more claims fit.
    """

    total: int
    exact: bool
    hosts: tuple[Count, ...]


def count(forest: Forest, question: CapacityQuery) -> Capacity:
    """Return how many times a request could be claimed.

    :raises BadRequest: a trait or resource class does not exist
    """
    request, everything = question.request, forest.everything
    name.check_all(request, forest.vocabulary)
    counts = counting.count_all(everything, request, question.most)
    serving = [each for each in counts if each.count]
    serving.sort(key=lambda each: (-each.count, each.tree.root.name or ""))
    return Capacity(
        sum(each.count for each in counts),
        all(each.exact for each in counts),
        tuple(serving[: question.most_hosts]),
    )

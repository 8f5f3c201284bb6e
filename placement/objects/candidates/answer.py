"""Finding the candidates that a question asks for. Nothing here needs the database."""

import itertools
import random
from collections.abc import Iterable, Iterator

from placement.objects.candidates import name
from placement.objects.candidates.forest import Forest
from placement.objects.candidates.question import NOTHING, Answer, Order, Question
from placement.search import engine
from placement.search.engine import Candidate
from placement.search.model import Provider, Request, Snapshot


def answer(forest: Forest, question: Question, order: Order) -> Answer:
    """Return ways to serve all request groups together, and who is in them.

    :raises BadRequest: a trait or resource class does not exist, and it is not certain
        already that there is nothing to list
    """
    request = question.request
    if not name.are_known(request, forest.vocabulary):
        name.check(request, forest.vocabulary, forest.everything)
        return NOTHING
    relevant = forest.relevant(request)
    candidates = find(relevant, question, order)
    return Answer(
        candidates=tuple(candidates),
        providers=tuple(_list_summarised(candidates, relevant, request)),
        resource_classes=frozenset().union(
            *(group.resources for group in request.groups)
        ),
    )


def find(snapshot: Snapshot, question: Question, order: Order) -> list[Candidate]:
    """Return as many candidates as are asked for, in an order."""
    shuffle = random.Random() if order.shuffled else None
    candidates = engine.search(
        snapshot,
        question.request,
        depth_first=order.depth_first,
        shuffle=shuffle,
        most=order.most,
    )
    found = list(itertools.islice(candidates, question.limit))
    if shuffle:
        shuffle.shuffle(found)
    return found


def _list_summarised(
    candidates: Iterable[Candidate], snapshot: Snapshot, request: Request
) -> Iterator[Provider]:
    """Yield the providers to tell about: from 1.29, whole trees of those that give."""
    givers = dict.fromkeys(
        giver for candidate in candidates for giver in candidate.givers()
    )
    if not request.nested:
        yield from givers
        return
    trees = dict.fromkeys(snapshot.homes[giver.uuid] for giver in givers)
    for tree in trees:
        yield from tree.members

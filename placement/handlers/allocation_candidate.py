"""Allocation candidates: the ways to serve a request."""

import functools
import itertools
import random
from collections.abc import Callable, Iterable, Iterator

from placement import conf, errors
from placement.objects import clock, trait
from placement.objects.candidates import prefilter, snapshot
from placement.objects.candidates.prefilter import Relevant
from placement.objects.candidates.snapshot import Vocabulary
from placement.operation import Call
from placement.schemas.allocation_candidate import Answer, Question
from placement.search import engine, rules
from placement.search.engine import Candidate
from placement.search.model import Provider, Request, Snapshot
from placement_foundation.operation import Reply

NOTHING = Answer((), (), frozenset())
# How many trees the first look takes beyond those that are wanted.
FIRST_TREES = 16


def list_candidates(call: Call[None]) -> Reply:
    """Answer with ways to serve all request groups together.

    :raises BadRequest: a trait or resource class does not exist, and it is not certain
        already that there is nothing to list
    """
    question: Question = call.query
    request = question.request
    vocabulary = snapshot.load_vocabulary(call.session)
    if not _knows(vocabulary, request):
        load = functools.cache(lambda: snapshot.load(call.session, vocabulary))
        _check_names(request, vocabulary, load)
        return Reply(NOTHING, modified=clock.now())
    loaded, candidates = load_and_find(call, vocabulary)
    classes = (group.resources for group in request.groups)
    answer = Answer(
        candidates=tuple(candidates),
        providers=tuple(_list_summarised(candidates, loaded, request)),
        resource_classes=frozenset().union(*classes),
    )
    return Reply(answer, modified=clock.now())


def load_and_find(
    call: Call[None], vocabulary: Vocabulary
) -> tuple[Snapshot, list[Candidate]]:
    """Return as many candidates as are asked for, and the trees that they are from.

    Where many trees can matter and few candidates are wanted, the first trees may do:
    the answer is the same as that of all trees then.
    """
    question: Question = call.query
    relevant = prefilter.list_relevant(call.session, question.request, vocabulary)
    some = _first_look(relevant, question, call.settings)
    if some:
        loaded = snapshot.load(call.session, vocabulary, some, in_a_row=True)
        candidates = find(loaded, question, call.settings)
        if _are_first_of_all(candidates, question, call.settings):
            return loaded, candidates
    loaded = snapshot.load(call.session, vocabulary, relevant.roots)
    return loaded, find(loaded, question, call.settings)


def _first_look(
    relevant: Relevant, question: Question, settings: conf.Settings
) -> frozenset[int] | None:
    """Return the roots of the trees that may do, if less than all may do."""
    depends_on_all = (
        settings.randomize_allocation_candidates
        or settings.max_allocation_candidates >= 0
    )
    if question.limit is None or depends_on_all:
        return None
    # Some trees turn out not to serve, for what only a search can see.
    return relevant.first(question.limit + question.limit // 4 + FIRST_TREES)


def _are_first_of_all(
    candidates: list[Candidate], question: Question, settings: conf.Settings
) -> bool:
    """Tell whether a search of all trees would begin with these candidates.

    By turns, it takes one of each tree before it takes a second one of any.
    """
    if len(candidates) != question.limit:
        return False
    roots = {candidate.providers[0].root_uuid for candidate in candidates}
    return _is_depth_first(settings) or len(roots) == len(candidates)


def _is_depth_first(settings: conf.Settings) -> bool:
    return settings.allocation_candidates_generation_strategy == "depth-first"


def find(
    loaded: Snapshot, question: Question, settings: conf.Settings
) -> list[Candidate]:
    """Return as many candidates as are asked for, in the order that the options say."""
    request = question.request
    most = settings.max_allocation_candidates
    shuffle = random.Random() if settings.randomize_allocation_candidates else None
    candidates = engine.search(
        loaded,
        request,
        depth_first=_is_depth_first(settings),
        shuffle=shuffle,
        most=None if most < 0 else max(most, 1),
    )
    found = list(itertools.islice(candidates, question.limit))
    if shuffle:
        shuffle.shuffle(found)
    return found


def _list_summarised(
    candidates: Iterable[Candidate], loaded: Snapshot, request: Request
) -> Iterator[Provider]:
    """Yield the providers to tell about: from 1.29, whole trees of those who give."""
    givers = dict.fromkeys(
        giver for candidate in candidates for giver in candidate.givers()
    )
    if not request.nested:
        yield from givers
        return
    trees = dict.fromkeys(loaded.homes[giver.uuid] for giver in givers)
    for tree in trees:
        yield from tree.members


def _knows(vocabulary: Vocabulary, request: Request) -> bool:
    """Tell whether all that a request names exists."""
    groups = request.groups
    classes = set().union(*(group.resources for group in groups))
    traits = request.root_required.union(
        request.root_forbidden,
        *(group.forbidden.union(*group.required) for group in groups),
    )
    return (
        classes <= vocabulary.class_ids.keys() and traits <= vocabulary.trait_ids.keys()
    )


def _check_names(
    request: Request, vocabulary: Vocabulary, load: Callable[[], Snapshot]
) -> None:
    """Refuse a name that does not exist, unless something before it has no chance.

    That is part of the API: what is looked at first decides about the answer.

    :param load: loads everything there is, where that has to be looked at
    :raises BadRequest: the first such name
    """
    root_traits = request.root_required | request.root_forbidden
    _check_traits(root_traits, vocabulary)
    if root_traits and not any(
        rules.suits_root(tree.root, request) for tree in load().trees
    ):
        return
    for group in request.groups:
        for name in group.resources:
            if name not in vocabulary.class_ids:
                raise errors.BadRequest(
                    "Invalid resource class in resources parameter: "
                    f"No such resource class {name}."
                )
        if group.member_of and not engine.has_member(load(), group):
            return
        _check_traits(frozenset().union(*group.required), vocabulary)
        _check_traits(group.forbidden, vocabulary)
        if not engine.is_served(load(), request, group):
            return


def _check_traits(names: frozenset[str], vocabulary: Vocabulary) -> None:
    unknown = names - vocabulary.trait_ids.keys()
    if unknown:
        raise errors.BadRequest(trait.UNKNOWN.format(name=min(unknown)))

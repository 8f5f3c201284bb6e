"""Allocation candidates: the ways to serve a request."""

import functools
import itertools
import random
from collections.abc import Callable, Iterable, Iterator

from placement import conf, errors
from placement.objects import clock, snapshot, trait, tree_filter
from placement.objects.snapshot import Vocabulary
from placement.operation import Call, Reply
from placement.schemas.allocation_candidate import Answer, Question
from placement.search import engine, rules
from placement.search.engine import Candidate
from placement.search.model import Provider, Request, Snapshot

NOTHING = Answer((), (), frozenset())


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
    root_ids = tree_filter.list_roots(call.session, request, vocabulary)
    loaded = snapshot.load(call.session, vocabulary, root_ids)
    candidates = find(loaded, question, call.settings)
    classes = (group.resources for group in request.groups)
    answer = Answer(
        candidates=tuple(candidates),
        providers=tuple(_list_summarised(candidates, loaded, request)),
        resource_classes=frozenset().union(*classes),
    )
    return Reply(answer, modified=clock.now())


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
        depth_first=settings.allocation_candidates_generation_strategy == "depth-first",
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
    classes = (group.resources for group in request.groups)
    traits = (
        group.forbidden.union(*group.required, request.root_required)
        for group in request.groups
    )
    return vocabulary.class_names.issuperset(
        itertools.chain.from_iterable(classes)
    ) and vocabulary.trait_names.issuperset(request.root_forbidden.union(*traits))


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
            if name not in vocabulary.class_names:
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
    unknown = names - vocabulary.trait_names
    if unknown:
        raise errors.BadRequest(trait.UNKNOWN.format(name=min(unknown)))

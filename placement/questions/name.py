"""Checking that all names in a request exist."""

import difflib
from collections.abc import Iterable

from placement import errors
from placement.forest.vocabulary import Vocabulary
from placement.model import constraint
from placement.model.constraint import Constraint, MemberOf, meets_all
from placement.model.request import Group, Request
from placement.model.resource_class import UNKNOWN_ASKED
from placement.model.resource_provider import ProviderFilters
from placement.model.trait import UNKNOWN_REQUIRED, UNKNOWN_TRAIT
from placement.model.tree import Snapshot
from placement.search import engine


def are_known(request: Request, vocabulary: Vocabulary) -> bool:
    """Return whether all traits and resource classes that a request names exist."""
    classes, traits = mentioned(request)
    return (
        classes <= vocabulary.class_ids.keys() and traits <= vocabulary.trait_ids.keys()
    )


def mentioned(request: Request) -> tuple[frozenset[str], frozenset[str]]:
    """Return all resource classes and traits that a request names."""
    groups = request.groups
    return (
        frozenset().union(*(group.resources for group in groups)),
        request.root_required.union(
            request.root_forbidden,
            *(group.forbidden.union(*group.required) for group in groups),
        ),
    )


def check(request: Request, vocabulary: Vocabulary, everything: Snapshot) -> None:
    """Refuse a name that does not exist, unless an earlier part cannot be served.

    The order of the checks is part of the API: it decides the answer.

    :raises BadRequest: a name does not exist; the error names the first such
    """
    root_traits = request.root_required | request.root_forbidden
    refuse(root_traits, vocabulary.trait_ids, UNKNOWN_TRAIT)
    of_root = constraint.of_root(request)
    if of_root and not any(meets_all(tree.root, of_root) for tree in everything.trees):
        return
    for group in request.groups:
        for name in group.resources:
            refuse([name], vocabulary.class_ids, UNKNOWN_ASKED)
        if not is_met(everything, MemberOf, group):
            return
        for names in (frozenset().union(*group.required), group.forbidden):
            refuse(names, vocabulary.trait_ids, UNKNOWN_TRAIT)
        if not engine.is_served(everything, request, group):
            return


def is_met(everything: Snapshot, kind: type[Constraint], group: Group) -> bool:
    """Return whether some provider meets all constraints of a kind on a group."""
    constraints = [kind(None, value) for value in kind.values_in(group)]
    return not constraints or any(
        meets_all(provider, constraints)
        for tree in everything.trees
        for provider in tree.members
    )


def check_all(request: Request, vocabulary: Vocabulary) -> None:
    """Refuse any name that does not exist, and suggest the nearest one that does.

    This is for questions of our own, in which the order of checks is no promise.

    :raises BadRequest: a name does not exist; the error names the first such
    """
    for group in request.groups:
        refuse_unknown(group.resources, vocabulary.class_ids, UNKNOWN_ASKED)
    _, traits = mentioned(request)
    refuse_unknown(traits, vocabulary.trait_ids, UNKNOWN_TRAIT)


def check_filters(filters: ProviderFilters, vocabulary: Vocabulary) -> None:
    """Refuse a name in filters that does not exist, and suggest the nearest one.

    :raises BadRequest: a name does not exist
    """
    traits = filters.forbidden_traits.union(*filters.traits)
    refuse_unknown(filters.resources, vocabulary.class_ids, UNKNOWN_ASKED)
    refuse_unknown(traits, vocabulary.trait_ids, UNKNOWN_REQUIRED)


def refuse(names: Iterable[str], known: Iterable[str], complaint: str) -> None:
    """Refuse names that are not known, in the words of the Placement API.

    :raises BadRequest: about the first of them
    """
    unknown = set(names).difference(known)
    if unknown:
        raise errors.BadRequest(complaint.format(name=min(unknown)))


def refuse_unknown(names: Iterable[str], known: Iterable[str], complaint: str) -> None:
    """Refuse names that are not known, and suggest the nearest one that is.

    :param complaint: the message about a name
    :raises BadRequest: about the first of them, with the nearest that is known
    """
    unknown = set(names).difference(known)
    if unknown:
        raise errors.BadRequest(complain(min(unknown), known, complaint))


def complain(unknown: str, known: Iterable[str], complaint: str) -> str:
    """Return the message about a name that is not known, with the nearest that is."""
    # All names are in capitals.
    nearest = difflib.get_close_matches(unknown.upper(), known, n=1)
    suggestion = f" Did you mean {nearest[0]}?" if nearest else ""
    return complaint.format(name=unknown) + suggestion

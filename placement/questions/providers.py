"""Which resource providers a list has."""

import operator
from collections.abc import Iterable, Sequence

from placement.forest.forest import Forest
from placement.model import constraint
from placement.model.constraint import MemberOf, TraitRequired
from placement.model.request import Group, Request
from placement.model.resource_class import UNKNOWN_ASKED
from placement.model.resource_provider import ProviderFilters
from placement.model.trait import UNKNOWN_REQUIRED
from placement.model.tree import Provider, Tree
from placement.questions import name
from placement.search import plan

_BY_ID = operator.attrgetter("id")


def list_by_filters(forest: Forest, filters: ProviderFilters) -> list[Provider]:
    """Return the providers that pass all filters, in the order of their ids.

    :raises BadRequest: a trait or resource class does not exist, unless the answer is
        known to be empty anyway
    """
    return sorted(select(forest, filters), key=_BY_ID)


def tree_of(filters: ProviderFilters) -> dict[str, str]:
    """Return the UUID or name of a provider whose tree is all that filters depend on.

    It is empty if they depend on more.
    """
    if filters.traits or filters.forbidden_traits or filters.resources:
        return {}
    uuid = filters.in_tree if filters.uuid is None else filters.uuid
    if uuid is not None:
        return {"uuid": uuid}
    return {} if filters.name is None else {"name": filters.name}


def list_members(tree: Tree | None, filters: ProviderFilters) -> list[Provider]:
    """Return the providers in such a tree that pass all filters, as above."""
    members = tree.members if tree else ()
    if filters.in_tree not in (None, *(each.uuid for each in members)):
        return []
    accepted = list(filter(filters.accepts, members))
    return sorted(_passing(accepted, _group_of(filters)), key=_BY_ID)


def select(forest: Forest, filters: ProviderFilters) -> Sequence[Provider]:
    """Return the providers that pass all filters, by tree, parents before children.

    :raises BadRequest: a trait or resource class does not exist, unless the answer is
        known to be empty anyway
    """
    group = _group_of(filters)
    if not name.are_known(Request((group,)), forest.vocabulary):
        _check_names(forest, filters)
        return ()
    members = [
        member
        for tree in _trees(forest, filters, group)
        for member in tree.members
        if filters.accepts(member)
    ]
    return _passing(members, group)


def _group_of(filters: ProviderFilters) -> Group:
    # As in a group with a suffix, one provider must have everything.
    return Group(
        suffix="1",
        resources=filters.resources,
        required=tuple(filters.traits),
        forbidden=filters.forbidden_traits,
        member_of=tuple(filters.aggregates),
        not_member_of=filters.forbidden_aggregates,
    )


def _trees(forest: Forest, filters: ProviderFilters, group: Group) -> Iterable[Tree]:
    """Return the trees that may have a member which passes."""
    named = [
        forest.tree_of(uuid)
        for uuid in (filters.uuid, filters.in_tree)
        if uuid is not None
    ]
    if not named:
        return forest.relevant(Request((group,))).trees
    return [tree for tree in named[:1] if tree and all(tree is each for each in named)]


def _passing(members: Sequence[Provider], group: Group) -> Sequence[Provider]:
    # The group names no tree.
    (want,) = plan.wants_of(group, {})
    return constraint.select(members, want.constraints)


def _check_names(forest: Forest, filters: ProviderFilters) -> None:
    """Refuse a name that does not exist, unless an earlier filter excludes everything.

    The order of the checks is part of the API: it decides the answer.

    :raises BadRequest: a name does not exist
    """
    if filters.in_tree is not None and forest.tree_of(filters.in_tree) is None:
        return
    words = forest.vocabulary
    traits = frozenset().union(*filters.traits)
    name.refuse(traits, words.trait_ids, UNKNOWN_REQUIRED)
    group = _group_of(filters)
    if not name.is_met(forest.everything, TraitRequired, group):
        return
    name.refuse(filters.forbidden_traits, words.trait_ids, UNKNOWN_REQUIRED)
    if not name.is_met(forest.everything, MemberOf, group):
        return
    for resource_class in filters.resources:
        name.refuse([resource_class], words.class_ids, UNKNOWN_ASKED)

"""The slowest program that is obviously right: allocation candidates by definition.

Each function says what one sentence of the API reference says, about ``forest.Node``
and the request. Nothing is pruned, ordered or remembered.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from placement.model.request import Group, Request
from placement.model.tree import SHARING
from tests.property.forest import Node

# The allocations, by provider and class, and the providers of each group, by suffix.
Found: TypeAlias = tuple[
    frozenset[tuple[str, str, int]], frozenset[tuple[str, frozenset[str]]]
]
Choice: TypeAlias = tuple[dict[tuple[Node, str], int], set[Node]]


def anchors(forest: list[Node], node: Node) -> set[Node]:
    reached = {node.root}
    if SHARING in node.traits:
        reached |= {
            other.root for other in forest if other.aggregates & node.aggregates
        }
    return reached


def fits(node: Node, name: str, amount: int) -> bool:
    if name not in node.inventories:
        return False
    inventory = node.inventories[name]
    return (
        inventory.min_unit <= amount <= inventory.max_unit
        and amount % inventory.step_size == 0
        and inventory.used + amount <= inventory.capacity
    )


def is_member(node: Node, group: Group) -> bool:
    return all(node.aggregates & one_of for one_of in group.member_of)


def may_give(
    forest: list[Node], node: Node, name: str, group: Group, anchor: Node
) -> bool:
    """Return whether the group without suffix may take a class from a provider."""
    home = node.root is anchor
    return (
        fits(node, name, group.resources[name])
        and (home or (anchor in anchors(forest, node) and not group.in_tree))
        and (not group.in_tree or node.root is named(forest, group).root)
        and (is_member(node, group) or (home and is_member(anchor, group)))
        and not (node.aggregates | anchor.aggregates) & group.not_member_of
    )


def named(forest: list[Node], group: Group) -> Node:
    return next(node for node in forest if node.name == group.in_tree)


def choices(forest: list[Node], group: Group, anchor: Node) -> Iterator[Choice]:
    if not group.suffix:
        yield from _spread_choices(forest, group, anchor)
        return
    for node in forest:
        if (
            anchor in anchors(forest, node)
            and all(fits(node, *each) for each in group.resources.items())
            and all(node.traits & one_of for one_of in group.required)
            and not node.traits & group.forbidden
            and is_member(node, group)
            and not node.aggregates & group.not_member_of
            and (
                not group.in_tree
                or not group.resources
                or node.root is named(forest, group).root
            )
            and (group.resources or group.required or group.member_of)
        ):
            taken = {(node, name): n for name, n in group.resources.items()}
            yield taken, {node}


def _spread_choices(forest: list[Node], group: Group, anchor: Node) -> Iterator[Choice]:
    names = list(group.resources)
    givers = [
        [node for node in forest if may_give(forest, node, name, group, anchor)]
        for name in names
    ]
    for picks in itertools.product(*givers):
        have = frozenset().union(*(node.traits for node in picks))
        if not have & group.forbidden and all(have & r for r in group.required):
            taken = {
                (node, name): group.resources[name]
                for node, name in zip(picks, names, strict=True)
            }
            yield taken, set(picks)


class TooMany(Exception):
    """There are too many combinations to look at all of them in a test."""


def candidates(
    forest: list[Node], request: Request, most: int | None = None
) -> set[Found]:
    """Return all candidates, by brute force.

    :param most: how many combinations of a tree are looked at
    :raises TooMany: there are more
    """
    names = {node.name for node in forest}
    if any(group.in_tree and group.in_tree not in names for group in request.groups):
        return set()
    found = set()
    for anchor in forest:
        if (
            anchor.parent is None
            and request.root_required <= anchor.traits
            and not request.root_forbidden & anchor.traits
        ):
            found |= set(_at(forest, request, anchor, most))
    return found


def _at(
    forest: list[Node], request: Request, anchor: Node, most: int | None
) -> Iterator[Found]:
    each = [list(choices(forest, group, anchor)) for group in request.groups]
    if most is not None and math.prod(map(len, each)) > most:
        raise TooMany
    for assignment in itertools.product(*each):
        users = {
            group.suffix: serving
            for group, (_, serving) in zip(request.groups, assignment, strict=True)
        }
        total: Counter[tuple[Node, str]] = Counter()
        for taken, _ in assignment:
            total.update(taken)
        if (
            _is_isolated(users, request)
            and _has_tops(users, request)
            and _has_room(total)
            and (request.nested or _gives_once_per_tree(total))
        ):
            yield (
                frozenset((node.name, name, n) for (node, name), n in total.items()),
                frozenset(
                    (suffix, frozenset(node.name for node in serving))
                    for suffix, serving in users.items()
                ),
            )


def _is_isolated(users: dict[str, set[Node]], request: Request) -> bool:
    suffixed = [
        node.name for suffix, serving in users.items() if suffix for node in serving
    ]
    return not request.isolate or len(set(suffixed)) == len(suffixed)


def _has_tops(users: dict[str, set[Node]], request: Request) -> bool:
    for names in request.same_subtree:
        together = set().union(*(users[suffix] for suffix in names))
        if not any(all(top in node.line for node in together) for top in together):
            return False
    return True


def _has_room(total: Counter[tuple[Node, str]]) -> bool:
    for (node, name), amount in total.items():
        inventory = node.inventories[name]
        if amount > inventory.max_unit or inventory.used + amount > inventory.capacity:
            return False
    return True


def _gives_once_per_tree(total: Counter[tuple[Node, str]]) -> bool:
    givers = {node for node, _ in total}
    return len({node.root for node in givers}) == len(givers)

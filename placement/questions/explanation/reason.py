"""Why hosts drop out of the funnel: what is true of all that do."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from placement.model.constraint import (
    Constraint,
    HasInventory,
    InTree,
    MemberOf,
    Room,
    Unit,
)
from placement.model.inventory import InventoryUsage
from placement.model.tree import Provider, Tree
from placement.questions.explanation import survey
from placement.questions.explanation.alike import Kind
from placement.questions.explanation.relaxation import classes_so_far, target_of
from placement.questions.explanation.smaller import largest
from placement.questions.explanation.survey import Deadline, Survey

# A constraint, and the kinds of hosts before and after it.
Step: TypeAlias = tuple[Constraint, Sequence[Kind], Sequence[Kind]]
Test: TypeAlias = Callable[[Tree], bool]


@dataclasses.dataclass(frozen=True, slots=True)
class Reason:
    """A constraint, how many hosts there were before it, and how many drop out.

    It ``is_plain`` if all of these, and none of the others, lack just what the
    constraint names; otherwise they only lack it together with what comes before.
    ``inventory`` has the most room of all that is too small, ``in_all`` is the most
    that several providers of one host have free in all. ``limit`` is the field of an
    inventory that refuses the amount, with its best value, and ``smaller`` the largest
    amount with which one of these hosts serves. ``pool`` has the class, and
    would share it with these hosts if it had what it lacks. ``is_vain`` says that no
    provider at all is in what the constraint names.
    """

    constraint: Constraint
    before: int
    out: int
    is_plain: bool = True
    inventory: InventoryUsage | None = None
    in_all: int = 0
    limit: tuple[str, int] | None = None
    smaller: int | None = None
    pool: Provider | None = None
    is_vain: bool = False

    @property
    def is_spread(self) -> bool:
        """Whether several providers of one host have more room than any one has."""
        return self.inventory is not None and self.in_all > max(0, self.inventory.free)


def reasons_of(
    asked: Survey, steps: Iterable[Step], deadline: Deadline
) -> tuple[Reason, ...]:
    """Return the reasons why hosts drop out, in the order of the funnel."""
    return tuple(
        _reason(asked, step, deadline) for step in steps if len(step[1]) > len(step[2])
    )


def _reason(asked: Survey, step: Step, deadline: Deadline) -> Reason:
    constraint, before, after = step
    left = set(after)
    out = [kind for kind in before if kind not in left]
    lacks = _test(asked, constraint)
    reason = Reason(constraint, survey.count(before), survey.count(out))
    if lacks and (
        not all(lacks(kind.example) for kind in out)
        or any(lacks(kind.example) for kind in after)
    ):
        return dataclasses.replace(reason, is_plain=False)
    trees = [tree for kind in out for tree in kind.trees]
    match constraint:
        case Room():
            return _with_inventory(reason, asked, trees)
        case Unit():
            return _with_limit(reason, asked, trees, deadline)
        case HasInventory():
            return dataclasses.replace(reason, pool=_pool(asked, constraint, trees))
        case InTree() | MemberOf() if lacks:
            is_vain = all(lacks(kind.example) for kind in asked.kinds)
            return dataclasses.replace(reason, is_vain=is_vain)
    return reason


def _test(asked: Survey, constraint: Constraint) -> Test | None:
    """Return a function that says whether a tree lacks what a constraint names."""
    if not constraint.is_testable:
        # It says no more than that hosts drop out.
        return None
    classes = frozenset(classes_so_far(asked.relaxations.constraints, constraint))
    return lambda tree: constraint.lacks(tree, asked.reach(tree), classes)


def _with_limit(
    reason: Reason, asked: Survey, trees: Sequence[Tree], deadline: Deadline
) -> Reason:
    inventories = [each for tree in trees for each in _inventories(asked, tree, reason)]
    target = target_of(reason.constraint)
    smaller = largest(asked, target, deadline, among=frozenset(trees))
    return dataclasses.replace(
        reason,
        limit=_limit(reason, inventories),
        smaller=smaller.amount if smaller else None,
    )


def _inventories(asked: Survey, tree: Tree, reason: Reason) -> Iterator[InventoryUsage]:
    name = reason.constraint.resource_class or ""
    for provider in asked.reach(tree):
        if name in provider.inventories:
            yield provider.inventories[name]


def _with_inventory(reason: Reason, asked: Survey, trees: Iterable[Tree]) -> Reason:
    best: InventoryUsage | None = None
    in_all = 0
    for tree in trees:
        inventories = list(_inventories(asked, tree, reason))
        if len(inventories) > 1:
            in_all = max(in_all, sum(max(0, each.free) for each in inventories))
        for inventory in inventories:
            if best is None or inventory.free > best.free:
                best = inventory
    return dataclasses.replace(reason, inventory=best, in_all=in_all)


def _limit(
    reason: Reason, inventories: Sequence[InventoryUsage]
) -> tuple[str, int] | None:
    """Return the field that makes every inventory refuse the amount, if it is one."""
    amount = reason.constraint.amount
    if not inventories:
        return None
    if all(amount > each.max_unit for each in inventories):
        return "max_unit", max(each.max_unit for each in inventories)
    if all(amount < each.min_unit for each in inventories):
        return "min_unit", min(each.min_unit for each in inventories)
    steps = {each.step_size for each in inventories}
    if len(steps) == 1 and amount % min(steps):
        return "step_size", min(steps)
    return None


def _pool(
    asked: Survey, constraint: Constraint, trees: Sequence[Tree]
) -> Provider | None:
    """Return a provider that lacks little to share a class with hosts without it.

    It shares, but not with them; or it is in an aggregate of theirs and has nothing but
    this class, and does not share.
    """
    name = constraint.resource_class or ""
    for provider in asked.snapshot.sharing:
        if name in provider.inventories:
            return provider
    theirs = frozenset().union(
        *(tree.aggregates for tree in trees if not tree.root.shares)
    )
    suspects = [
        tree.root
        for tree in (asked.snapshot.trees if theirs else ())
        if tree.root.is_alone
        and tree.root.inventories.keys() == {name}
        and not theirs.isdisjoint(tree.root.aggregates)
    ]
    # Where most have the class, they are hosts, and those without it are the pools.
    return suspects[0] if 0 < len(suspects) < len(trees) else None

"""Why hosts drop out of the funnel: what is true of all that do."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from placement.model.inventory import InventoryUsage
from placement.model.tree import Provider, Tree
from placement.questions.explanation import survey
from placement.questions.explanation.alike import Kind
from placement.questions.explanation.constraint import Constraint, classes_so_far
from placement.questions.explanation.smaller import largest_for
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
    reason = Reason(
        constraint,
        survey.count(before),
        survey.count(out),
        lacks is None
        or (
            all(lacks(kind.example) for kind in out)
            and not any(lacks(kind.example) for kind in after)
        ),
    )
    if not reason.is_plain:
        return reason
    trees = [tree for kind in out for tree in kind.trees]
    match constraint.kind:
        case "room":
            return _with_inventory(reason, asked, trees)
        case "unit":
            inventories = [
                each for tree in trees for each in _inventories(asked, tree, reason)
            ]
            return dataclasses.replace(
                reason,
                limit=_limit(reason, inventories),
                smaller=largest_for(asked, constraint, trees, deadline),
            )
        case "inventory":
            return dataclasses.replace(reason, pool=_pool(asked, constraint, trees))
        case "in_tree" | "member_of" if lacks:
            is_vain = all(lacks(kind.example) for kind in asked.kinds)
            return dataclasses.replace(reason, is_vain=is_vain)
    return reason


def _test(asked: Survey, constraint: Constraint) -> Test | None:
    """Return a function that says whether a tree lacks what a constraint names."""
    value, name = constraint.value, constraint.resource_class or ""
    names = frozenset(value) if isinstance(value, tuple) else frozenset({str(value)})
    amount = value if isinstance(value, int) else 0
    trees_by_uuid = asked.snapshot.tree_by_uuid

    def nowhere(meets: Callable[[Provider], bool]) -> Test:
        return lambda tree: not any(map(meets, asked.reach(tree)))

    match constraint.kind:
        case "inventory":
            classes = set(classes_so_far(asked.relaxations.constraints, constraint))
            return nowhere(lambda provider: classes <= provider.inventories.keys())
        case "in_tree":
            return lambda tree: trees_by_uuid.get(str(value)) is not tree
        case "member_of":
            return nowhere(lambda provider: bool(names & provider.aggregates))
        case "not_member_of":
            return lambda tree: value in tree.root.aggregates
        case "required":
            return nowhere(lambda provider: bool(names & provider.traits))
        case "forbidden":
            return lambda tree: any(value in each.traits for each in tree.members)
        case "unit":
            return nowhere(
                lambda provider: (
                    name in provider.inventories
                    and provider.inventories[name].suits(amount)
                )
            )
        case "room":
            return nowhere(
                lambda provider: (
                    name in provider.inventories
                    and provider.inventories[name].holds(amount)
                )
            )
    # What is about roots or all groups says no more than that hosts drop out.
    return None


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
    amount = int(str(reason.constraint.value))
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

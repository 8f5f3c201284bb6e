"""Why hosts drop out of the funnel: what is true of all that do."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from placement.model.constraint import Constraint, HasInventory, Unit
from placement.model.inventory import InventoryUsage
from placement.model.tree import SHARING, Tree
from placement.questions.explanation import survey
from placement.questions.explanation.alike import Kind
from placement.questions.explanation.relaxation import target_of
from placement.questions.explanation.smaller import largest
from placement.questions.explanation.survey import Deadline, Survey

# A constraint, and the kinds of hosts before and after it.
Step: TypeAlias = tuple[Constraint, Sequence[Kind], Sequence[Kind]]


@dataclasses.dataclass(frozen=True, slots=True)
class Reason:
    """A constraint, how many hosts there were before it, and how many drop out.

    It ``is_plain`` if all of these, and none of the others, lack just what the
    constraint names; otherwise they only lack it together with what comes before.
    ``remarks`` are phrases about what there is instead. ``smaller`` is the largest
    amount with which one of these hosts serves. ``is_vain`` says that no provider at
    all is in what the constraint names.
    """

    constraint: Constraint
    before: int
    out: int
    is_plain: bool = True
    remarks: tuple[str, ...] = ()
    smaller: int | None = None
    is_vain: bool = False


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
    reason = Reason(constraint, survey.count(before), survey.count(out))
    if not constraint.is_testable:
        # It says no more than that hosts drop out.
        return reason

    def lacks(kind: Kind) -> bool:
        return constraint.lacks(kind.example, asked.reach(kind.example))

    if not all(map(lacks, out)) or any(map(lacks, after)):
        return dataclasses.replace(reason, is_plain=False)
    trees = [tree for kind in out for tree in kind.trees]
    vain = constraint.in_vain()
    is_vain = bool(vain) and all(map(lacks, asked.kinds))
    smaller = None
    if isinstance(constraint, Unit):
        target = target_of(constraint)
        smaller = largest(asked, target, deadline, among=frozenset(trees))
    remarks = [vain] if is_vain else _remarks(asked, constraint, trees)
    if smaller:
        remarks.append(f"{smaller.amount} would do")
    return dataclasses.replace(
        reason,
        remarks=tuple(remarks),
        smaller=smaller.amount if smaller else None,
        is_vain=is_vain,
    )


def _remarks(asked: Survey, constraint: Constraint, trees: Sequence[Tree]) -> list[str]:
    """Return phrases about what hosts that drop out have instead."""
    if isinstance(constraint, HasInventory):
        return _pool(asked, str(constraint.resource_class), trees)
    return constraint.remarks([_inventories(asked, tree, constraint) for tree in trees])


def _inventories(
    asked: Survey, tree: Tree, constraint: Constraint
) -> list[InventoryUsage]:
    inventories = map(constraint.inventory_of, asked.reach(tree))
    return [each for each in inventories if each]


def _pool(asked: Survey, name: str, trees: Sequence[Tree]) -> list[str]:
    """Return a phrase about a provider that lacks little to share a class with hosts.

    It shares, but not with them; or it is in an aggregate of theirs and has nothing but
    this class, and does not share.
    """
    them = "them" if len(trees) > 1 else "it"
    for provider in asked.snapshot.sharing:
        if name in provider.inventories:
            pool = provider.name or provider.uuid
            return [f"{pool} shares {name}, but is in no aggregate with {them}"]
    theirs = frozenset().union(
        *(tree.aggregates for tree in trees if not tree.root.shares)
    )
    suspects = [
        tree.root
        for tree in (asked.snapshot.trees if theirs else ())
        if len(tree.members) == 1
        and tree.root.inventories.keys() == {name}
        and not theirs.isdisjoint(tree.root.aggregates)
    ]
    # Where most have the class, they are hosts, and those without it are the pools.
    if not 0 < len(suspects) < len(trees):
        return []
    pool = suspects[0].name or suspects[0].uuid
    return [f"{pool} is in an aggregate with {them}, but lacks {SHARING}"]

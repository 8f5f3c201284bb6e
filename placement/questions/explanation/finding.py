"""What the providers of a host have instead of what is needed, and the closest one."""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from placement.model.inventory import InventoryUsage
from placement.model.tree import Provider, Tree
from placement.questions.explanation.constraint import OF_ROOT, Constraint, Shown
from placement.questions.explanation.survey import Survey

# How many of the constraints of a group, given by suffix, a provider meets.
Met: TypeAlias = Counter[tuple[str | None, Provider]]


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """What a provider that does not meet a constraint has instead.

    ``provider`` is None if the constraint is about all groups together.
    """

    constraint: Constraint
    has: Shown = None
    provider: Provider | None = None
    inventory: InventoryUsage | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """Which providers of a host meet a constraint, and the closest that does not."""

    constraint: Constraint
    meeting: tuple[Provider, ...]
    closest: Finding | None


def judge(asked: Survey, trees: Sequence[Tree]) -> list[dict[Constraint, Verdict]]:
    """Return the verdict on each constraint, for each host."""
    meeting: list[dict[Constraint, Sequence[Provider]]] = [{} for _ in trees]
    for constraint in asked.relaxations.constraints:
        if constraint.suffix is not None:
            found = asked.meeting(constraint, list(trees))
            for of_tree, providers in zip(meeting, found, strict=True):
                of_tree[constraint] = providers
    return [
        _verdicts(asked, tree, of_tree)
        for tree, of_tree in zip(trees, meeting, strict=True)
    ]


def not_alone(constraint: Constraint) -> Finding:
    """Return the finding for a constraint that each provider meets by itself."""
    return Finding(constraint)


def _verdicts(
    asked: Survey, tree: Tree, meeting: Mapping[Constraint, Sequence[Provider]]
) -> dict[Constraint, Verdict]:
    met = Counter(
        (constraint.suffix, provider)
        for constraint, having in meeting.items()
        for provider in having
    )
    return {
        constraint: _verdict(asked, tree, constraint, meeting, met)
        for constraint in asked.relaxations.constraints
    }


def _verdict(
    asked: Survey,
    tree: Tree,
    constraint: Constraint,
    meeting: Mapping[Constraint, Sequence[Provider]],
    met_by: Met,
) -> Verdict:
    if constraint.kind in OF_ROOT:
        if constraint.meets(tree.root, ()):
            return Verdict(constraint, (tree.root,), None)
        return Verdict(constraint, (), _finding(constraint, tree.root))
    if constraint.suffix is None:
        return Verdict(constraint, (), Finding(constraint))
    met = meeting[constraint]
    others = [provider for provider in asked.reach(tree) if provider not in met]
    closest = None
    if others:
        closest = _finding(constraint, _closest(constraint, others, met_by))
    return Verdict(constraint, tuple(met), closest)


def _closest(
    constraint: Constraint, providers: Sequence[Provider], met_by: Met
) -> Provider:
    """Return the provider that meets most of what its group asks for.

    A provider without the class is never the closest to having an amount of it.
    """

    def closeness(provider: Provider) -> tuple[bool, int, int]:
        inventory = provider.inventories.get(constraint.resource_class or "")
        return (
            inventory is not None,
            met_by[constraint.suffix, provider],
            inventory.free if inventory else 0,
        )

    # The first one wins a tie.
    return max(providers, key=closeness)


def _finding(constraint: Constraint, provider: Provider) -> Finding:
    return Finding(
        constraint,
        constraint.has(provider),
        provider,
        constraint.inventory_of(provider),
    )

"""What the providers of a host have instead of what is needed, and the closest one."""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from placement.model.inventory import InventoryUsage
from placement.model.tree import Provider, Tree
from placement.questions.explanation.constraint import OF_AMOUNT, OF_ROOT, Constraint
from placement.questions.explanation.survey import Survey

# What is needed, or what is there, in the form for a document.
Shown: TypeAlias = Any
# How many of the constraints of a group, given by suffix, a provider meets.
Met: TypeAlias = Counter[tuple[str | None, Provider]]


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """What a provider that does not meet a constraint has instead.

    ``provider`` is None if the constraint is about all groups together.
    """

    constraint: Constraint
    needs: Shown
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
    return Finding(constraint, _needs(constraint))


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
        wanted = constraint.kind == "root_required"
        if (constraint.value in tree.root.traits) == wanted:
            return Verdict(constraint, (tree.root,), None)
        return Verdict(constraint, (), _finding(constraint, tree.root))
    if constraint.suffix is None:
        return Verdict(constraint, (), Finding(constraint, _needs(constraint)))
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


def _needs(constraint: Constraint) -> Shown:
    if constraint.kind in ("forbidden", "not_member_of", "root_forbidden"):
        return f"!{constraint.value}"
    if isinstance(constraint.value, tuple):
        return list(constraint.value)
    return constraint.value


def _finding(constraint: Constraint, provider: Provider) -> Finding:
    inventory = None
    if constraint.kind in OF_AMOUNT:
        inventory = provider.inventories.get(constraint.resource_class or "")
    has = _has(constraint, provider, inventory)
    return Finding(constraint, _needs(constraint), has, provider, inventory)


def _has(
    constraint: Constraint, provider: Provider, inventory: InventoryUsage | None
) -> Shown:
    value = constraint.value
    match constraint.kind:
        case "room":
            return max(0, inventory.free) if inventory else 0
        case "unit" if inventory:
            names = ("min_unit", "max_unit", "step_size")
            return {name: getattr(inventory, name) for name in names}
        case "inventory":
            return sorted(provider.inventories)
        case "in_tree":
            return provider.root_uuid
        case "member_of":
            return sorted(provider.aggregates)
        case "forbidden" | "not_member_of" | "root_forbidden":
            return value
        case "required" | "root_required":
            return []
    return None

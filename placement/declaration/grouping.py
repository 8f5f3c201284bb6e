"""Trees that come true together: one takes a name or a provider from another.

Names may be exchanged, children may move to other trees, and a machine may be replaced
by another of its name. All trees of a group are written in one transaction, or none.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence

from placement.declaration.outcome import Result, TreePlan
from placement.declaration.world import StoredTrees
from placement.model.tree import Provider

FAILURES = (Result.CONFLICT, Result.REFUSED, Result.STALE)
STALE = "It differs from the plan that was shown: plan it again."


def settle(
    plans: Sequence[TreePlan],
    world: StoredTrees,
    homes: Mapping[str, int],
    planned: Collection[str] | None,
) -> list[TreePlan]:
    """Return plans with their groups, of which those fail that cannot come true.

    :param homes: the numbers of the plans that are about stored providers
    :param planned: the digests of plans that may be carried out; None for all
    """
    groups = _Groups(len(plans))
    settled = _settle_names(plans, world, groups)
    for number, each in enumerate(plans):
        for provider in _moved(each):
            parent = provider.parent_uuid or provider.uuid
            home = homes.get(parent, homes.get(provider.root_uuid, number))
            groups.join(number, home)
    settled = _fail_together(settled, groups)
    if planned is not None:
        settled = [
            _fail(each, Result.STALE, STALE)
            if each.writes and each.changes and each.digest not in planned
            else each
            for each in settled
        ]
    settled = _fail_together(settled, groups)
    return [
        dataclasses.replace(each, group=groups.of(number))
        for number, each in enumerate(settled)
    ]


def _settle_names(
    plans: Sequence[TreePlan], world: StoredTrees, groups: "_Groups"
) -> list[TreePlan]:
    """Join plans of which one gets a name that another gives up; refuse the rest."""
    vacated = {
        uuid: number for number, each in enumerate(plans) for uuid in _vacated(each)
    }
    settled = list(plans)
    for number, each in enumerate(plans):
        for name in _taken(each):
            holder = world.by_name.get(name)
            if holder and holder.uuid in vacated:
                groups.join(number, vacated[holder.uuid])
            elif holder or name in world.taken:
                settled[number] = _fail(each, Result.REFUSED, _complain(name, holder))
    return settled


def _fail(plan: TreePlan, result: Result, reason: str) -> TreePlan:
    return TreePlan(result, plan.name, plan.uuid, reason=reason)


def _fail_together(plans: Sequence[TreePlan], groups: "_Groups") -> list[TreePlan]:
    """Return plans, of which all of a group fail if one does."""
    failed = {
        groups.of(number): each
        for number, each in enumerate(plans)
        if each.result in FAILURES
    }

    def together(number: int, plan: TreePlan) -> TreePlan:
        cause = failed.get(groups.of(number))
        if cause is None or not plan.writes:
            return plan
        result = Result.STALE if cause.result is Result.STALE else Result.REFUSED
        reason = f"It can only be done together with {cause.name}, which is not done."
        return _fail(plan, result, reason)

    return [together(number, each) for number, each in enumerate(plans)]


def _complain(name: str, holder: Provider | None) -> str:
    if holder is None:
        return f"The name {name} is taken: the database knows it as another's."
    return f"The name {name} is taken by resource provider {holder.uuid}."


class _Groups:
    """Numbers that belong together."""

    def __init__(self, count: int) -> None:
        self._parents = list(range(count))

    def of(self, number: int) -> int:
        """Return the number that stands for the group of a number."""
        while self._parents[number] != number:
            number = self._parents[number]
        return number

    def join(self, one: int, other: int) -> None:
        """Make the groups of two numbers one."""
        first, second = sorted((self.of(one), self.of(other)))
        self._parents[second] = first


def _taken(plan: TreePlan) -> Iterable[str]:
    """Return the names that providers of a tree get."""
    return (
        goal.name for goal in plan.goals if goal.provider is None or goal.is_renamed
    )


def _vacated(plan: TreePlan) -> Iterable[str]:
    """Return the UUIDs of the providers of a tree that lose their names."""
    yield from (goal.uuid for goal in plan.goals if goal.is_renamed)
    yield from (provider.uuid for provider in plan.removed)


def _moved(plan: TreePlan) -> Iterable[Provider]:
    return (goal.provider for goal in plan.goals if goal.provider and goal.is_moved)

"""The largest amounts that some host serves, instead of those in a request."""

import dataclasses
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from placement.model.constraint import Constraint
from placement.model.inventory import InventoryUsage
from placement.model.request import Group, Request
from placement.model.tree import Tree
from placement.questions.explanation import survey
from placement.questions.explanation.alike import Kind, kinds_of
from placement.questions.explanation.relaxation import Set, Target, target_of
from placement.questions.explanation.survey import Deadline, Survey

Amounts: TypeAlias = Mapping[Target, int]
# The most amounts beside which another one is tried, that other groups may take.
MOST_SUMS = 4096


@dataclasses.dataclass(frozen=True, slots=True)
class Smaller:
    """An amount, and how many hosts serve if it is requested."""

    amount: int
    serves: int


@dataclasses.dataclass(frozen=True, slots=True)
class Swap:
    """An amount of a class to request for a group, instead of the ``asked`` one."""

    suffix: str
    resource_class: str
    asked: int
    amount: int


@dataclasses.dataclass(frozen=True, slots=True)
class Offer:
    """Amounts to change, and how many hosts serve then."""

    swaps: tuple[Swap, ...]
    serves: int


def offer_for(
    asked: Survey,
    dropped: Iterable[Constraint],
    about: Iterable[Constraint],
    deadline: Deadline,
) -> Offer | None:
    """Return the amounts to lower instead of leaving them out; None if none will do.

    More hosts serve the request with these amounts, and without the other dropped
    constraints. Each amount is the largest, given those before it.

    :param about: those of the dropped constraints that are about an amount
    """
    relaxations = asked.relaxations
    waiting = list(dict.fromkeys(map(target_of, about)))
    put_back = [each for each in dropped if target_of(each) in waiting]
    kept = relaxations.all.difference(dropped).union(put_back)
    already = survey.count(asked.serving(relaxations.all))
    resources = {each.suffix: each.resources for each in relaxations.request.groups}
    amounts: dict[Target, int] = {}
    swaps, serves = [], 0
    while waiting:
        suffix, name = target = waiting.pop(0)
        for_now = kept - relaxations.amounts_of(waiting)
        smaller = largest(asked, target, deadline, for_now, amounts, already=already)
        if not smaller:
            return None
        amounts[target], serves = smaller.amount, smaller.serves
        swaps.append(Swap(suffix, name, resources[suffix][name], smaller.amount))
    return Offer(tuple(swaps), serves)


def largest(
    asked: Survey,
    target: Target,
    deadline: Deadline,
    kept: Set | None = None,
    amounts: Amounts | None = None,
    *,
    already: int = 0,
    among: Collection[Tree] | None = None,
) -> Smaller | None:
    """Return the largest smaller amount of a class that more hosts serve, if any does.

    :param kept: the constraints that are kept; None means all
    :param amounts: the amounts of other classes that are changed
    :param already: how many hosts are not enough
    :param among: the only trees that matter; None means all
    """
    kept = asked.relaxations.all if kept is None else kept
    amounts = amounts or {}
    hopes = _hopes(asked, target, kept, amounts, deadline)
    if among is not None:
        hopes = {tree: each for tree, each in hopes.items() if tree in among}
    for amount in sorted(frozenset().union(*hopes.values()), reverse=True):
        if deadline.has_come():
            break
        hopeful = [tree for tree, each in hopes.items() if max(each) >= amount]
        if len(hopeful) > already:
            serving = _serving(asked, kept, {**amounts, target: amount}, hopeful)
            if survey.count(serving) > already:
                return Smaller(amount, survey.count(serving))
    return None


def _hopes(
    asked: Survey, target: Target, kept: Set, amounts: Amounts, deadline: Deadline
) -> dict[Tree, frozenset[int]]:
    """Return the amounts that hosts may serve, if they serve with none at all.

    There are none if the time is up: of some hosts only, they would be wrong.
    """
    suffix, name = target
    groups = _with(asked.relaxations.request, amounts).groups
    most = next(each.resources[name] for each in groups if each.suffix == suffix) - 1
    others = (each.resources.get(name, 0) for each in groups if each.suffix != suffix)
    sums = _sums(others)
    if sums is None:
        # An amount that is not tried may be nearer than those that are.
        asked.is_decided = False
        return {}

    @functools.cache
    def of_inventory(inventory: InventoryUsage) -> frozenset[int]:
        return frozenset(
            each for taken in sums for each in _fit(inventory, most, taken)
        )

    hopes = {}
    without = kept - asked.relaxations.amounts_of([target])
    for kind in _serving(asked, without, amounts):
        for tree in kind.trees:
            if deadline.has_come():
                return {}
            inventories = [each.inventories.get(name) for each in asked.reach(tree)]
            hopes[tree] = frozenset().union(
                *map(of_inventory, filter(None, inventories))
            )
    return {tree: each for tree, each in hopes.items() if each}


def _serving(
    asked: Survey, kept: Set, amounts: Amounts, trees: Iterable[Tree] | None = None
) -> Sequence[Kind]:
    """Return the kinds that serve the kept part of a request, with other amounts."""
    if not amounts:
        return asked.serving(kept)
    relaxations = asked.relaxations
    kinds = kinds_of(asked.snapshot, _with(relaxations.request, amounts), trees)
    for request in relaxations.requests(kept):
        kinds = asked.serving_request(_with(request, amounts), kinds)
    return kinds


def _with(request: Request, amounts: Amounts) -> Request:
    """Return a request with other amounts."""
    groups = tuple(_group_with(group, amounts) for group in request.groups)
    return dataclasses.replace(request, groups=groups)


def _group_with(group: Group, amounts: Amounts) -> Group:
    resources = {
        name: amounts.get((group.suffix, name), amount)
        for name, amount in group.resources.items()
    }
    return dataclasses.replace(group, resources=resources)


def _fit(inventory: InventoryUsage, most: int, taken: int) -> Iterator[int]:
    """Yield the largest amount that an inventory may have beside some taken, if any."""
    most = min(most, inventory.room - taken)
    most -= most % inventory.step_size
    if most > 0 and inventory.suits(most):
        yield most


def _sums(amounts: Iterable[int]) -> set[int] | None:
    """Return the sums of every choice of the amounts; None if there are too many.

    With each amount, there may be twice as many.
    """
    sums = {0}
    for amount in amounts:
        sums |= {each + amount for each in sums}
        if len(sums) > MOST_SUMS:
            return None
    return sums

"""The largest amounts that some host serves, instead of those in a request."""

import dataclasses
import functools
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import TypeAlias

from placement.model.inventory import InventoryUsage
from placement.model.request import Group, Request
from placement.model.tree import Tree
from placement.questions.explanation import survey
from placement.questions.explanation.alike import Kind, kinds_of
from placement.questions.explanation.constraint import (
    OF_AMOUNT,
    Constraint,
    HasInventory,
)
from placement.questions.explanation.relaxation import Set
from placement.questions.explanation.survey import Deadline, Smaller, Survey

# A class of a group: suffix and name.
Target: TypeAlias = tuple[str, str]
Amounts: TypeAlias = Mapping[Target, int]
# The amounts that an inventory may serve, the largest first.
Hopes: TypeAlias = tuple[int, ...]
# The most amounts beside which another one is tried, that other groups may take.
MOST_SUMS = 4096


@dataclasses.dataclass(frozen=True, slots=True)
class Swap:
    """Another amount to ask for of a class of a group, instead of the one asked."""

    suffix: str
    resource_class: str
    asked: int
    amount: int


@dataclasses.dataclass(frozen=True, slots=True)
class Offer:
    """Amounts to change, and how many hosts serve then."""

    swaps: tuple[Swap, ...]
    serves: int


def largest_smaller(
    asked: Survey, constraint: Constraint, deadline: Deadline
) -> Smaller | None:
    """Return the largest smaller amount at which some host serves; None without one."""
    target = target_of(constraint)
    if target not in asked.smaller:
        trade = _Trade(asked, asked.relaxations.all, {})
        asked.smaller[target] = trade.largest(target, deadline)
    return asked.smaller[target]


def largest_for(
    asked: Survey, constraint: Constraint, trees: Collection[Tree], deadline: Deadline
) -> int | None:
    """Return the largest smaller amount that one of some trees serves, if any does."""
    if not largest_smaller(asked, constraint, deadline):
        return None
    trade = _Trade(asked, asked.relaxations.all, {})
    smaller = trade.largest(target_of(constraint), deadline, among=frozenset(trees))
    return smaller.amount if smaller else None


def target_of(constraint: Constraint) -> Target:
    """Return the group and class that a constraint is about."""
    return constraint.suffix or "", str(constraint.resource_class)


def offer_for(
    asked: Survey,
    dropped: Sequence[Constraint],
    about_amounts: Sequence[Constraint],
    deadline: Deadline,
) -> Offer | None:
    """Return the amounts to lower instead of leaving them out; None if none will do.

    An offer is what a request yields with these amounts, and without the other dropped
    constraints: more hosts serve. Each amount is the largest, given those before it.

    :param about_amounts: those of the dropped constraints that are about an amount
    """
    relaxations = asked.relaxations
    by_target = {target_of(each): each for each in about_amounts}
    kept = relaxations.all & ~sum(map(relaxations.bit, dropped))
    for each in by_target.values():
        for kind in ("inventory", *OF_AMOUNT):
            kept |= relaxations.about(kind, each)
    amounts: dict[Target, int] = {}
    already = survey.count(asked.serving(relaxations.all))
    waiting = list(by_target)
    serves = 0
    while waiting:
        target = waiting.pop(0)
        trade = _Trade(asked, kept & ~_amounts_of(asked, waiting, by_target), amounts)
        smaller = trade.largest(target, deadline, already)
        if not smaller:
            return None
        amounts[target], serves = smaller.amount, smaller.serves
    return _offer(asked, amounts, serves)


def _offer(asked: Survey, amounts: Amounts, serves: int) -> Offer:
    groups = {each.suffix: each for each in asked.relaxations.request.groups}
    return Offer(
        tuple(
            Swap(suffix, name, groups[suffix].resources[name], amount)
            for (suffix, name), amount in amounts.items()
        ),
        serves,
    )


def _amounts_of(
    asked: Survey, targets: Iterable[Target], known: Mapping[Target, Constraint]
) -> Set:
    about = asked.relaxations.about
    return sum(about(kind, known[each]) for each in targets for kind in OF_AMOUNT)


class _Trade:
    """A request of which some constraints are kept, with some amounts changed."""

    def __init__(self, asked: Survey, kept: Set, amounts: Amounts) -> None:
        self._survey = asked
        self._kept = kept
        self._amounts = amounts

    def largest(
        self,
        target: Target,
        deadline: Deadline,
        already: int = 0,
        *,
        among: Collection[Tree] | None = None,
    ) -> Smaller | None:
        """Return the largest smaller amount that more hosts serve.

        :param already: how many hosts are not enough
        :param among: the only trees that matter; None means all
        """
        hopes = self._hopes(target, deadline)
        if among is not None:
            hopes = {tree: each for tree, each in hopes.items() if tree in among}
        amounts: set[int] = set().union(*hopes.values())
        for amount in sorted(amounts, reverse=True):
            if deadline.has_come():
                break
            hopeful = [tree for tree, (most, *_) in hopes.items() if most >= amount]
            if len(hopeful) <= already:
                continue
            serves = self._count(target, amount, hopeful)
            if serves > already:
                return Smaller(amount, serves)
        return None

    def _hopes(self, target: Target, deadline: Deadline) -> dict[Tree, Hopes]:
        """Return the amounts that hosts may serve, if they serve with none at all.

        There are none if the time is up: of some hosts only, they would be wrong.
        """
        relaxations = self._survey.relaxations
        suffix, name = target
        like = HasInventory(suffix, name, name)
        without = sum(relaxations.about(kind, like) for kind in OF_AMOUNT)
        hope = self._survey.hope((target, *self._amounts.items()), self._finder)
        hopes = {}
        for tree in self._serving(self._kept & ~without):
            if deadline.has_come():
                return {}
            hopes[tree] = hope(tree)
        return {tree: each for tree, each in hopes.items() if each}

    def _finder(self, target: Target) -> Callable[[Tree], Hopes]:
        """Return a function from a tree to the amounts of it that may do."""
        suffix, name = target
        groups = self._changed(self._survey.relaxations.request).groups
        asked = next(each.resources[name] for each in groups if each.suffix == suffix)
        others = (each for each in groups if each.suffix != suffix)
        sums = _sums(each.resources[name] for each in others if name in each.resources)
        if sums is None:
            # What is not tried may be nearer than what is.
            self._survey.is_decided = False
            return lambda tree: ()
        of_inventory = functools.cache(
            lambda inventory: frozenset(
                amount for taken in sums for amount in _smaller(inventory, asked, taken)
            )
        )

        def of_tree(tree: Tree) -> Hopes:
            found: set[int] = set()
            for provider in self._survey.reach(tree):
                if name in provider.inventories:
                    found |= of_inventory(provider.inventories[name])
            return tuple(sorted(found, reverse=True))

        return of_tree

    def _serving(self, kept: Set) -> Iterator[Tree]:
        if not self._amounts:
            kinds = self._survey.serving(kept)
        else:
            kinds = self._ask(kept, self._amounts, self._survey.snapshot.trees)
        return (tree for kind in kinds for tree in kind.trees)

    def _count(self, target: Target, amount: int, trees: Iterable[Tree]) -> int:
        amounts = {**self._amounts, target: amount}
        return survey.count(self._ask(self._kept, amounts, trees))

    def _ask(self, kept: Set, amounts: Amounts, trees: Iterable[Tree]) -> list[Kind]:
        relaxations = self._survey.relaxations
        looked_for = _with(relaxations.request, amounts)
        kinds = kinds_of(self._survey.snapshot, looked_for, trees)
        for request in relaxations.requests(kept):
            kinds = self._survey.serving_request(_with(request, amounts), kinds)
        return kinds

    def _changed(self, request: Request) -> Request:
        return _with(request, self._amounts)


def _with(request: Request, amounts: Amounts) -> Request:
    """Return a request that asks for other amounts."""
    groups = tuple(_group_with(group, amounts) for group in request.groups)
    return dataclasses.replace(request, groups=groups)


def _group_with(group: Group, amounts: Amounts) -> Group:
    resources = {
        name: amounts.get((group.suffix, name), amount)
        for name, amount in group.resources.items()
    }
    return dataclasses.replace(group, resources=resources)


def _smaller(inventory: InventoryUsage, asked: int, taken: int) -> Iterator[int]:
    """Yield the largest smaller amount that an inventory may have beside some taken."""
    most = min(asked - 1, inventory.room - taken)
    most -= most % inventory.step_size
    if most > 0 and inventory.fits(most):
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

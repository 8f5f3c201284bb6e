"""The largest amount, smaller than the one asked for, that some host serves."""

import dataclasses
from collections.abc import Iterable, Iterator

from placement.model.inventory import InventoryUsage
from placement.model.request import Request
from placement.model.tree import Tree
from placement.questions.explanation import survey
from placement.questions.explanation.alike import kinds_of
from placement.questions.explanation.constraint import OF_AMOUNT, Constraint
from placement.questions.explanation.survey import Deadline, Smaller, Survey


def largest_smaller(
    asked: Survey, constraint: Constraint, deadline: Deadline
) -> Smaller | None:
    """Return the largest smaller amount at which some host serves; None without one."""
    suffix, name = constraint.suffix or "", str(constraint.resource_class)
    relaxations = asked.relaxations
    key = (suffix, name)
    if key not in asked.smaller:
        without = sum(relaxations.about(kind, constraint) for kind in OF_AMOUNT)
        hopes = _Hopes(asked, suffix, name, relaxations.all & ~without)
        asked.smaller[key] = hopes.largest(deadline)
    return asked.smaller[key]


class _Hopes:
    """The amounts that hosts may serve, if they serve with no amount at all."""

    def __init__(self, asked: Survey, suffix: str, name: str, kept: int) -> None:
        self._survey = asked
        self._suffix = suffix
        self._name = name
        request = asked.relaxations.request
        self._amount = next(
            group.resources[name] for group in request.groups if group.suffix == suffix
        )
        self._sums = _sums(
            group.resources[name]
            for group in request.groups
            if group.suffix != suffix and name in group.resources
        )
        trees = [tree for kind in asked.serving(kept) for tree in kind.trees]
        hopes = {tree: set(self._of(tree)) for tree in trees}
        self._hopes = {tree: each for tree, each in hopes.items() if each}

    def _of(self, tree: Tree) -> Iterator[int]:
        """Yield the amounts that may be the largest one for a host."""
        for provider in self._survey.reach(tree):
            stock = provider.stocks.get(self._name)
            if stock is not None:
                yield from self._of_stock(stock)

    def _of_stock(self, stock: InventoryUsage) -> Iterator[int]:
        for taken in self._sums:
            most = min(self._amount - 1, stock.room - taken)
            most -= most % stock.step_size
            if most > 0 and stock.fits(most):
                yield most

    def largest(self, deadline: Deadline) -> Smaller | None:
        """Return the largest amount that some host serves, and how many do."""
        amounts: set[int] = set().union(*self._hopes.values())
        for amount in sorted(amounts, reverse=True):
            if deadline.has_come():
                break
            request = self._asking_for(amount)
            hopeful = (
                tree for tree, hopes in self._hopes.items() if max(hopes) >= amount
            )
            kinds = kinds_of(self._survey.snapshot, request, hopeful)
            serves = survey.count(self._survey.serving_request(request, kinds))
            if serves:
                return Smaller(amount, serves)
        return None

    def _asking_for(self, amount: int) -> Request:
        request = self._survey.relaxations.request
        groups = tuple(
            dataclasses.replace(
                group, resources={**group.resources, self._name: amount}
            )
            if group.suffix == self._suffix
            else group
            for group in request.groups
        )
        return dataclasses.replace(request, groups=groups)


def _sums(amounts: Iterable[int]) -> set[int]:
    """Return the sums of every choice of the amounts."""
    sums = {0}
    for amount in amounts:
        sums |= {each + amount for each in sums}
    return sums

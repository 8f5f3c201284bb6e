"""Trees that look alike to a request: one stands for all."""

import dataclasses
import functools
from collections.abc import Hashable, Iterable
from typing import TypeAlias

from placement.model.constraint import Constraint, of_provider, of_root
from placement.model.inventory import InventoryUsage
from placement.model.request import Request
from placement.model.tree import Provider, Snapshot, Tree

Sight: TypeAlias = Hashable


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """Trees that serve the same parts of a request, however it is relaxed.

    ``trees`` are in the order of the snapshot.
    """

    trees: list[Tree]

    @property
    def example(self) -> Tree:
        """One of them."""
        return self.trees[0]


def kinds_of(
    snapshot: Snapshot,
    request: Request,
    trees: Iterable[Tree] | None = None,
    *,
    exactly: bool = False,
) -> list[Kind]:
    """Return the kinds of trees there are.

    :param trees: the trees to sort into kinds; None means all
    :param exactly: whether inventories that are more than enough differ from each other
    """
    eye = _Eye(snapshot, request, exactly)
    kinds: dict[Sight, Kind] = {}
    for tree in snapshot.trees if trees is None else trees:
        sight = eye.look_at(tree)
        kind = kinds.get(sight)
        if kind is None:
            kind = kinds[sight] = Kind([])
        kind.trees.append(tree)
    return list(kinds.values())


class _Eye:
    """Looks at trees as a request does: sees only what can make a difference.

    That is which constraints a provider meets, and how much it has for several groups.
    """

    def __init__(self, snapshot: Snapshot, request: Request, exactly: bool) -> None:
        self._exactly = exactly
        self._constraints = tuple(
            dict.fromkeys(
                each
                for group in request.groups
                for each in of_provider(group, snapshot.tree_by_uuid)
            )
        )
        self._of_root = (*self._constraints, *of_root(request))
        self._amounts: dict[str, list[int]] = {}
        for group in request.groups:
            for name, amount in group.resources.items():
                self._amounts.setdefault(name, []).append(amount)
        self._ordered = any(len(names) > 1 for names in request.same_subtree)
        self._same = request.nested and not self._ordered
        self._sharing_with = functools.cache(snapshot.sharing_with)
        self._inventories: dict[tuple[str, int], Sight] = {}
        self._numbers: dict[Sight, int] = {}

    def look_at(self, tree: Tree) -> Sight:
        """Return the sight of a tree, including the providers that share with it."""
        # If its place in another tree matters, a provider is like no other.
        others = sorted(
            self._see(provider, self._constraints)
            if self._same
            else self._number(provider.uuid)
            for provider in self._sharing_with(tree.aggregates)
            if provider.root_uuid != tree.root.uuid
        )
        if self._ordered:
            return self._form(tree), tuple(others)
        rest = [self._see(member, self._constraints) for member in tree.members[1:]]
        return self._see(tree.root, self._of_root), tuple(sorted(rest)), tuple(others)

    def _number(self, sight: Sight) -> int:
        return self._numbers.setdefault(sight, len(self._numbers))

    def _see(self, provider: Provider, constraints: Iterable[Constraint]) -> int:
        inventories = provider.inventories
        return self._number(
            (
                tuple([each.meets(provider) for each in constraints]),
                # Amounts that others take from a sharing provider are gone.
                self._exactly and provider.shares,
                tuple(
                    [
                        self._see_inventory(name, inventories[name])
                        if name in inventories
                        else None
                        for name in self._amounts
                    ]
                ),
            )
        )

    def _see_inventory(self, name: str, inventory: InventoryUsage) -> Sight:
        key = (name, id(inventory))
        sight = self._inventories.get(key)
        if sight is None:
            seen = _see(inventory, self._amounts[name])
            sight = (seen, inventory.free) if self._exactly else seen
            self._inventories[key] = sight
        return sight

    def _form(self, tree: Tree) -> int:
        """Return a number for the sights in a tree and their places in it."""
        below: dict[str | None, list[int]] = {}
        for provider in reversed(tree.members):
            constraints = self._constraints if provider.parent_uuid else self._of_root
            children = tuple(sorted(below.pop(provider.uuid, ())))
            form = self._number((self._see(provider, constraints), children))
            below.setdefault(provider.parent_uuid, []).append(form)
        return below[None][0]


def _see(inventory: InventoryUsage, amounts: list[int]) -> Sight:
    suits = tuple(inventory.suits(amount) for amount in amounts)
    if len(amounts) == 1:
        return suits, inventory.holds(amounts[0])
    # Several groups may share it: the amount matters, up to the sum of theirs.
    total = sum(amounts)
    return suits, min(inventory.max_unit, total), max(-1, min(inventory.free, total))

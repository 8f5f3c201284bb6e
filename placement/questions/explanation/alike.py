"""Trees that look alike to a request: one stands for all."""

import dataclasses
import functools
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeAlias

from placement.model.inventory import InventoryUsage
from placement.model.request import Group, Request
from placement.model.tree import Provider, Snapshot, Tree

Sight: TypeAlias = Hashable


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """Trees that serve the same parts of a request, however it is relaxed.

    ``number`` counts the kinds; ``trees`` are in the order of the snapshot.
    """

    number: int
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
            kind = kinds[sight] = Kind(len(kinds), [])
        kind.trees.append(tree)
    return list(kinds.values())


class _Eye:
    """Looks at trees as a request does: sees only what can make a difference."""

    def __init__(self, snapshot: Snapshot, request: Request, exactly: bool) -> None:
        groups = request.groups
        self._exactly = exactly
        self._amounts = _amounts_by_class(groups)
        self._traits = frozenset().union(
            *(group.forbidden.union(*group.required) for group in groups)
        )
        self._root_traits = (
            self._traits | request.root_required | request.root_forbidden
        )
        self._aggregates = frozenset().union(
            *(group.not_member_of.union(*group.member_of) for group in groups)
        )
        self._named = {
            snapshot.tree_by_uuid[group.in_tree].root.uuid
            for group in groups
            if group.in_tree is not None and group.in_tree in snapshot.tree_by_uuid
        }
        self._ordered = any(len(names) > 1 for names in request.same_subtree)
        self._same = request.nested and not self._ordered
        self._sharing_with = functools.cache(snapshot.sharing_with)
        self._inventories: dict[tuple[str, int], Sight] = {}
        self._common: dict[tuple[frozenset[str], frozenset[str]], frozenset[str]] = {}
        self._numbers: dict[Sight, int] = {}

    def look_at(self, tree: Tree) -> Sight:
        """Return what is seen in a tree, including the providers that share with it."""
        root = self._see(tree.root, self._root_traits)
        others = [
            self._see_stranger(provider)
            for provider in self._sharing_with(tree.aggregates)
            if provider.root_uuid != tree.root.uuid
        ]
        others.sort()
        if len(tree.members) == 1:
            return root, (), tuple(others)
        if self._ordered:
            return self._form(tree), (), tuple(others)
        rest = [self._see(provider, self._traits) for provider in tree.members[1:]]
        rest.sort()
        return root, tuple(rest), tuple(others)

    def _number(self, sight: Sight) -> int:
        return self._numbers.setdefault(sight, len(self._numbers))

    def _see(self, provider: Provider, traits: frozenset[str]) -> int:
        inventories = provider.inventories
        return self._number(
            (
                self._among(provider.traits, traits),
                self._among(provider.aggregates, self._aggregates),
                # What others take from it is not there any more.
                self._exactly and provider.shares,
                provider.root_uuid if provider.root_uuid in self._named else None,
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

    def _see_stranger(self, provider: Provider) -> int:
        """Look at a provider of another tree.

        If its place in that tree matters, it is like no other.
        """
        if not self._same:
            return self._number(("", provider.uuid))
        return self._see(provider, self._traits)

    def _among(self, names: frozenset[str], of: frozenset[str]) -> frozenset[str]:
        if not of:
            return of
        known = self._common.get((names, of))
        if known is None:
            known = self._common[names, of] = names & of
        return known

    def _see_inventory(self, name: str, inventory: InventoryUsage) -> Sight:
        key = (name, id(inventory))
        sight = self._inventories.get(key)
        if sight is None:
            seen = _see(inventory, self._amounts[name])
            sight = (seen, inventory.free) if self._exactly else seen
            self._inventories[key] = sight
        return sight

    def _form(self, tree: Tree) -> int:
        """Return a number for what is seen in a tree and where in it."""
        below: dict[str | None, list[int]] = {}
        for provider in reversed(tree.members):
            traits = self._traits if provider.parent_uuid else self._root_traits
            children = tuple(sorted(below.pop(provider.uuid, ())))
            form = self._number((self._see(provider, traits), children))
            below.setdefault(provider.parent_uuid, []).append(form)
        return below[None][0]


def _amounts_by_class(groups: Iterable[Group]) -> Mapping[str, list[int]]:
    amounts: dict[str, list[int]] = {}
    for group in groups:
        for name, amount in group.resources.items():
            amounts.setdefault(name, []).append(amount)
    return amounts


def _see(inventory: InventoryUsage, amounts: list[int]) -> Sight:
    suits = tuple(inventory.suits(amount) for amount in amounts)
    if len(amounts) == 1:
        return suits, inventory.holds(amounts[0])
    # Several groups may share it: the amount matters, up to the sum they ask for.
    total = sum(amounts)
    return suits, min(inventory.max_unit, total), max(-1, min(inventory.free, total))

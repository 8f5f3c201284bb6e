"""A request without some of its constraints."""

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

from placement.model.request import Group, Request
from placement.model.tree import Snapshot
from placement.questions.explanation.constraint import (
    OF_ALL,
    OF_AMOUNT,
    OF_ROOT,
    Constraint,
    constraints_of,
)

# Constraints as bits, by their place in the list.
Set: TypeAlias = int


class Relaxations:
    """A request, and what it becomes when constraints are left out."""

    def __init__(self, request: Request, snapshot: Snapshot) -> None:
        self.request = request
        self.constraints = constraints_of(request)
        self.all: Set = (1 << len(self.constraints)) - 1
        self._bits = {each: 1 << at for at, each in enumerate(self.constraints)}
        self._tree_by_uuid = snapshot.tree_by_uuid
        self._of_kind: dict[str, Set] = {}
        for each, bit in self._bits.items():
            self._of_kind[each.kind] = self._of_kind.get(each.kind, 0) | bit
        self.of_root = self.of_kinds(*OF_ROOT)
        self.of_all = self.of_kinds(*OF_ALL)
        self.inventories = self.of_kinds("inventory")
        self._of_group = dict.fromkeys((group.suffix for group in request.groups), 0)
        for each, bit in self._bits.items():
            if each.suffix is not None:
                self._of_group[each.suffix] |= bit
        self._amounts = {
            (each.kind, each.suffix, each.resource_class): bit
            for each, bit in self._bits.items()
        }
        # Made once, because most groups ask for most of the same.
        self._set_of = {each: frozenset(each.names) for each in self.constraints}
        self._groups: dict[tuple[str, Set], Group] = {}

    def of_kinds(self, *kinds: str) -> Set:
        """Return the constraints of some kinds."""
        return sum(self._of_kind.get(kind, 0) for kind in kinds)

    def bit(self, constraint: Constraint) -> Set:
        """Return the set of one constraint."""
        return self._bits[constraint]

    def of_group(self, suffix: str) -> Set:
        """Return the constraints of a group."""
        return self._of_group[suffix]

    def inventories_of(self, suffix: str) -> Set:
        """Return the constraints of a group that name its resource classes."""
        return self.inventories & self._of_group[suffix]

    def listed(self, some: Set) -> tuple[Constraint, ...]:
        """Return the constraints of a set, in their order."""
        # Found in a string, which takes no arithmetic on thousands of bits.
        bits = f"{some:b}"[::-1]
        constraints, found = self.constraints, []
        at = bits.find("1")
        while at >= 0:
            found.append(constraints[at])
            at = bits.find("1", at + 1)
        return tuple(found)

    def requests(self, kept: Set) -> tuple[Request, ...]:
        """Return the requests that keep only some of the constraints.

        There are several if the groups need not be served together.
        """
        if kept == self.all:
            return (self.request,)
        names = [group.suffix for group in self.request.groups]
        together = self._kept("together", kept) or len(names) == 1
        if not together:
            return tuple(self.of_one(name, kept) for name in names)
        return (
            dataclasses.replace(
                self._of_groups(names, kept),
                isolate=bool(self._kept("isolate", kept)),
                same_subtree=tuple(
                    frozenset(each.names) for each in self._kept("same_subtree", kept)
                ),
            ),
        )

    def of_one(self, suffix: str, kept: Set) -> Request:
        """Return the request for one group alone, with only some of the constraints."""
        return self._of_groups([suffix], kept)

    def essence(self, kept: Set) -> Set:
        """Return a set without the constraints that mean nothing without others."""
        essence = self._essence(kept, self.all)
        if len(self.request.groups) > 1 and not self._kept("together", kept):
            essence &= ~self.of_all
        return essence

    def unimplied(self, unmet: Set) -> Set:
        """Return a set without the amounts of classes whose inventory is in it."""
        return unmet & self._without_amounts(unmet & self.inventories)

    def _without_amounts(self, inventories: Set) -> Set:
        return self.all & ~sum(
            self.about(kind, each)
            for each in self.listed(inventories)
            for kind in OF_AMOUNT
        )

    def essence_of_one(self, suffix: str, kept: Set) -> Set:
        """Return the essence of the constraints on one group and on roots."""
        return self._essence(kept, self.of_root | self._of_group[suffix])

    def _essence(self, kept: Set, among: Set) -> Set:
        kept &= among
        return kept & self._without_amounts(self.inventories & among & ~kept)

    def of_none(self, kept: Set) -> Request:
        """Return the request for roots alone, without any group."""
        return self._of_groups([], kept)

    def bare(self, constraint: Constraint) -> Set:
        """Return a constraint with those that it needs to mean anything."""
        bare = self._bits[constraint]
        if constraint.kind in OF_AMOUNT:
            bare |= self.about("inventory", constraint)
        return bare

    def about(self, kind: str, like: Constraint) -> Set:
        """Return the constraint of a kind on the same class of the same group."""
        return self._amounts[kind, like.suffix, like.resource_class]

    def _kept(self, kind: str, kept: Set) -> tuple[Constraint, ...]:
        return self.listed(kept & self.of_kinds(kind))

    def _of_groups(self, suffixes: Sequence[str], kept: Set) -> Request:
        return Request(
            groups=tuple(
                self._relaxed(group, kept & self._of_group[group.suffix])
                for group in self.request.groups
                if group.suffix in suffixes
            ),
            root_required=self._values("root_required", kept),
            root_forbidden=self._values("root_forbidden", kept),
            nested=self.request.nested,
        )

    def _relaxed(self, group: Group, kept: Set) -> Group:
        known = self._groups.get((group.suffix, kept))
        if known is None:
            known = self._relax(group, kept)
            self._groups[group.suffix, kept] = known
        return known

    def _relax(self, group: Group, kept: Set) -> Group:
        if kept == self._of_group[group.suffix]:
            return group
        asked = self._classes("inventory", kept)
        in_tree = group.in_tree if self._values("in_tree", kept) else None
        if not group.resources and in_tree in self._tree_by_uuid:
            # It had no effect to begin with.
            in_tree = None
        return Group(
            suffix=group.suffix,
            resources={
                name: amount
                for name, amount in group.resources.items()
                if name in asked
            },
            required=self._sets("required", kept),
            forbidden=self._values("forbidden", kept),
            member_of=self._sets("member_of", kept),
            not_member_of=self._values("not_member_of", kept),
            in_tree=in_tree,
            # A group that asks for nothing to be found gains nothing from asking less.
            relaxed=bool(group.resources or group.required or group.member_of),
            any_unit=asked - self._classes("unit", kept),
            no_room=asked - self._classes("room", kept),
        )

    def _values(self, kind: str, kept: Set) -> frozenset[str]:
        return frozenset(str(each.value) for each in self._kept(kind, kept))

    def _classes(self, kind: str, kept: Set) -> frozenset[str]:
        return frozenset(str(each.resource_class) for each in self._kept(kind, kept))

    def _sets(self, kind: str, kept: Set) -> tuple[frozenset[str], ...]:
        return tuple([self._set_of[each] for each in self._kept(kind, kept)])

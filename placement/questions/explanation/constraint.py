"""A request as a list of constraints, and the requests without some of them."""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from placement.model.request import Group, Request
from placement.model.tree import Snapshot

Value: TypeAlias = str | int | tuple[str, ...] | None

# The kinds that are about the root of a tree, and those about all groups together.
OF_ROOT = ("root_required", "root_forbidden")
OF_ALL = ("together", "isolate", "same_subtree")
# The kinds that are about an amount of a class.
OF_AMOUNT = ("unit", "room")


@dataclasses.dataclass(frozen=True, slots=True)
class Constraint:
    """One thing that a request asks for.

    ``suffix`` belongs to the group that asks for it; None stands for all groups.
    ``value`` is a name, an amount, or several names of which one will do.
    """

    kind: str
    suffix: str | None
    value: Value
    resource_class: str | None = None

    @property
    def id(self) -> str:
        """Its identifier, unique in the request."""
        value = self.value
        if self.resource_class is not None:
            value = self.resource_class
        elif isinstance(value, tuple):
            value = ",".join(value)
        name = f"{self.kind}{self.suffix or ''}"
        return name if value is None or self.kind == "together" else f"{name}:{value}"


# Constraints as bits, by their place in the list.
Set: TypeAlias = int


def constraints_of(request: Request) -> tuple[Constraint, ...]:
    """Return the constraints of a request, in the order of the funnel."""
    listed = [*_of_root(request)]
    for group in request.groups:
        listed += _of_group(group)
    return tuple(dict.fromkeys([*listed, *_of_all(request)]))


def classes_so_far(
    constraints: Sequence[Constraint], constraint: Constraint
) -> list[str]:
    """Return the classes that one provider must have once a class is considered.

    The group without suffix takes them from any provider.
    """
    classes = [
        str(each.resource_class)
        for each in constraints[: constraints.index(constraint) + 1]
        if each.kind == "inventory" and each.suffix == constraint.suffix
    ]
    return classes if constraint.suffix else classes[-1:]


def weight(some: Iterable[Constraint]) -> int:
    """Return how far from serving a host is that does not meet some constraints.

    Those on the amount of a class count once, and a class that is not there counts for
    more than too little of it.
    """
    some = tuple(some)
    others = [each for each in some if each.kind not in OF_AMOUNT]
    gone = {
        (each.suffix, each.resource_class)
        for each in others
        if each.kind == "inventory"
    }
    amounts = {
        (each.suffix, each.resource_class) for each in some if each.kind in OF_AMOUNT
    }
    return len(amounts - gone) + len(others) + len(gone)


def _of_root(request: Request) -> Iterator[Constraint]:
    for name in sorted(request.root_required):
        yield Constraint("root_required", None, name)
    for name in sorted(request.root_forbidden):
        yield Constraint("root_forbidden", None, name)


def _of_group(group: Group) -> Iterator[Constraint]:
    of = functools.partial(Constraint, suffix=group.suffix)
    for name in group.resources:
        yield of("inventory", value=name, resource_class=name)
    if group.in_tree is not None:
        yield of("in_tree", value=group.in_tree)
    for one_of in group.member_of:
        yield of("member_of", value=tuple(sorted(one_of)))
    for aggregate in sorted(group.not_member_of):
        yield of("not_member_of", value=aggregate)
    for one_of in group.required:
        yield of("required", value=tuple(sorted(one_of)))
    for name in sorted(group.forbidden):
        yield of("forbidden", value=name)
    for kind in OF_AMOUNT:
        for name, amount in group.resources.items():
            yield of(kind, value=amount, resource_class=name)


def _of_all(request: Request) -> Iterator[Constraint]:
    if len(request.groups) > 1:
        suffixes = tuple(group.suffix for group in request.groups)
        yield Constraint("together", None, suffixes)
    if request.isolate:
        yield Constraint("isolate", None, None)
    for names in request.same_subtree:
        yield Constraint("same_subtree", None, tuple(sorted(names)))


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
        self._set_of = {each: frozenset(_names(each)) for each in self.constraints}
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
                    frozenset(_names(each)) for each in self._kept("same_subtree", kept)
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


def _names(constraint: Constraint) -> tuple[str, ...]:
    return constraint.value if isinstance(constraint.value, tuple) else ()

"""A request without some of its constraints."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from placement.model.constraint import (
    OF_PICKS,
    OF_PROVIDER,
    OF_ROOT,
    Constraint,
    HasInventory,
    InTree,
    Room,
    Together,
    Unit,
    of_picks,
    of_provider,
    of_root,
)
from placement.model.request import Group, Request
from placement.model.tree import Snapshot, Tree

Set: TypeAlias = frozenset[Constraint]
# A class of a group: suffix and name.
Target: TypeAlias = tuple[str, str]


class Relaxations:
    """A request, and its forms without some of its constraints."""

    def __init__(self, request: Request, snapshot: Snapshot) -> None:
        self.request = request
        self.constraints = constraints_of(request, snapshot.tree_by_uuid)
        self.all: Set = frozenset(self.constraints)
        # What all groups together mean.
        self.basis: Set = frozenset(
            each for each in self.all if isinstance(each, HasInventory | Together)
        )

    def listed(self, some: Set) -> tuple[Constraint, ...]:
        """Return the constraints of a set, in their order."""
        return tuple([each for each in self.constraints if each in some])

    def amounts_of(self, targets: Iterable[Target]) -> Set:
        """Return the constraints on amounts of some classes."""
        targets = frozenset(targets)
        return frozenset(
            each for each in self.all if each.of_amount and target_of(each) in targets
        )

    def implied(self, some: Iterable[Constraint]) -> Set:
        """Return the constraints that mean nothing without some others."""
        gone = [target_of(each) for each in some if isinstance(each, HasInventory)]
        return self.amounts_of(gone) if gone else frozenset()

    def requests(self, kept: Set, about: Constraint | None = None) -> Sequence[Request]:
        """Return the requests that keep only some of the constraints.

        There are several if the groups need not be served together.

        :param about: the request is for what this constraint is about: for the root,
            for a group, or for all
        """
        if about and about.of_root:
            return [self._of_groups([], kept)]
        if about and about.suffix is not None:
            return [self._of_groups([about.suffix], kept)]
        if kept == self.all:
            return [self.request]
        suffixes = [group.suffix for group in self.request.groups]
        if len(suffixes) > 1 and not any(isinstance(each, Together) for each in kept):
            return [self._of_groups([suffix], kept) for suffix in suffixes]
        return [self._of_groups(suffixes, kept, (*OF_ROOT, *OF_PICKS))]

    def _of_groups(
        self,
        suffixes: Collection[str],
        kept: Set,
        kinds: Iterable[type[Constraint]] = OF_ROOT,
    ) -> Request:
        """Return the request for some groups with some constraints.

        :param kinds: the kinds of constraints on more than one group to keep
        """
        listed = self.listed(kept)
        of_group: dict[str | None, list[Constraint]] = {}
        for each in listed:
            of_group.setdefault(each.suffix, []).append(each)
        return Request(
            groups=tuple(
                _relax(group, of_group.get(group.suffix, ()))
                for group in self.request.groups
                if group.suffix in suffixes
            ),
            nested=self.request.nested,
            **_fields(kinds, listed),
        )


def _relax(group: Group, kept: Sequence[Constraint]) -> Group:
    if not group.resources:
        # ``in_tree`` had no effect to begin with, unless there is no such tree.
        kept = [
            each
            for each in kept
            if not isinstance(each, InTree) or each.root_uuid is not None
        ]
    classes, unit, room = (
        frozenset(str(each.resource_class) for each in kept if isinstance(each, kind))
        for kind in (HasInventory, Unit, Room)
    )
    return Group(
        suffix=group.suffix,
        resources={
            name: amount for name, amount in group.resources.items() if name in classes
        },
        # A group that has nothing to be found gains nothing from having less.
        relaxed=bool(group.resources or group.required or group.member_of),
        any_unit=classes - unit,
        no_room=classes - room,
        **_fields(OF_PROVIDER, kept),
    )


def _fields(
    kinds: Iterable[type[Constraint]], kept: Iterable[Constraint]
) -> Mapping[str, Any]:
    """Return the fields of a request or group that keeps some constraints."""
    by_kind: dict[str, list[Constraint]] = {kind.kind: [] for kind in kinds}
    for each in kept:
        if each.kind in by_kind:
            by_kind[each.kind].append(each)
    return {kind.kind: kind.field_of(by_kind[kind.kind]) for kind in kinds}


def constraints_of(
    request: Request, trees: Mapping[str, Tree]
) -> tuple[Constraint, ...]:
    """Return the constraints of a request, in the order of the funnel.

    :param trees: the trees by the UUIDs of their members
    """
    listed = [*of_root(request)]
    for group in request.groups:
        suffix, resources = group.suffix, group.resources
        classes: tuple[str, ...] = ()
        for name in resources:
            listed.append(HasInventory(suffix, name, name, classes))
            # The group without suffix takes each from any provider.
            classes = (*classes, name) if suffix else ()
        listed += of_provider(group, trees, suffix)
        listed += [Unit(suffix, amount, name) for name, amount in resources.items()]
        listed += [Room(suffix, amount, name) for name, amount in resources.items()]
    if len(request.groups) > 1:
        listed.append(Together(None, tuple(group.suffix for group in request.groups)))
    return tuple(dict.fromkeys([*listed, *of_picks(request)]))


def target_of(constraint: Constraint) -> Target:
    """Return the group and class that a constraint is about."""
    return constraint.suffix or "", str(constraint.resource_class)


def weight(some: Iterable[Constraint]) -> int:
    """Return how far from serving a host is that does not meet some constraints.

    Those on the amount of a class count once, and a class that is not there counts for
    more than too little of it.
    """
    some = tuple(some)
    others = [each for each in some if not each.of_amount]
    gone = {target_of(each) for each in others if isinstance(each, HasInventory)}
    amounts = {target_of(each) for each in some if each.of_amount}
    return len(amounts - gone) + len(others) + len(gone)

"""What a declaration changes: from values to values.

The unit of ownership is one inventory class, one trait or one aggregate of a provider,
and the provider itself, with its name and parent.

============  =================  ===================================================
declared now  declared before    what is done
============  =================  ===================================================
yes                              set to that value
no            yes                removed, if it still has the declared value and no
                                 other owner declares it; otherwise left, and
                                 reported as drift
no            no                 left alone
============  =================  ===================================================

What another owner declares with another value is a conflict: nothing of the tree is
changed, unless that is forced. A provider is removed only if that is asked for, if this
owner created it, and if it has nothing that this owner has not declared.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from placement.declaration import unit
from placement.declaration.unit import Owners
from placement.declaration.world import StoredTrees, Undeclarable, check_names, find
from placement.model.declaration import (
    NO_NAMES,
    Change,
    Declared,
    DeclaredProvider,
    DeclaredTree,
    Names,
    is_same,
)
from placement.model.inventory import Inventory
from placement.model.tree import Provider

# Stands for the UUID of a provider that has none yet.
NO_UUID = ""


class Result(StrEnum):
    """What becomes of a tree."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    CHANGED = "changed"
    REMOVED = "removed"
    CONFLICT = "conflict"
    REFUSED = "refused"


def _no_uuid() -> str:
    return NO_UUID


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """How a declaration is meant.

    With ``force``, what other owners declare otherwise is taken over. With ``prune``,
    providers go that this owner created and no longer declares; ``complete`` says that
    this is so for the trees that are not mentioned, too. ``make_uuid`` makes up the
    UUIDs of new providers.
    """

    owner: str
    force: bool = False
    prune: bool = False
    complete: bool = False
    make_uuid: Callable[[], str] = _no_uuid


@dataclasses.dataclass(frozen=True, slots=True)
class Goal:
    """What a provider is to be. None stands for what stays as it is.

    ``provider`` is None if it is to be created.
    """

    provider: Provider | None
    uuid: str
    name: str
    parent_uuid: str | None
    inventories: Mapping[str, Inventory] | None = None
    traits: frozenset[str] | None = None
    aggregates: frozenset[str] | None = None

    @property
    def has_parts(self) -> bool:
        """Whether anything that belongs to the provider changes."""
        kinds = (self.inventories, self.traits, self.aggregates)
        return any(kind is not None for kind in kinds)


@dataclasses.dataclass(frozen=True, slots=True)
class TreePlan:
    """What becomes of one tree, and what has to be written for that.

    ``goals`` has parents before their children, ``removed`` children before their
    parents. ``declared`` has what is to be remembered, by UUID of the provider and by
    owner; what is empty is forgotten.
    """

    result: Result
    name: str
    uuid: str
    changes: tuple[Change, ...] = ()
    drift: tuple[Change, ...] = ()
    reason: str | None = None
    goals: tuple[Goal, ...] = ()
    removed: tuple[Provider, ...] = ()
    declared: Mapping[tuple[str, str], Declared] = dataclasses.field(
        default_factory=dict
    )

    @property
    def writes(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.goals or self.removed or self.declared)


class _Piece(NamedTuple):
    """What becomes of one provider of a tree."""

    goal: Goal | None = None
    changes: tuple[Change, ...] = ()
    drift: tuple[Change, ...] = ()
    declared: Mapping[tuple[str, str], Declared] = {}
    removed: Provider | None = None


def plan(
    trees: Iterable[DeclaredTree], world: StoredTrees, terms: Terms
) -> list[TreePlan]:
    """Return what becomes of declared trees, in their order.

    Those of trees that are no longer declared follow, if they are to be pruned.
    """
    declared = list(trees)
    claimed: set[str] = set()
    plans = [_plan_tree(parts, world, terms, claimed) for parts in declared]
    if terms.prune and terms.complete:
        plans += [
            _prune_tree(root_uuid, world, terms)
            for root_uuid in list_undeclared(declared, world, terms.owner)
        ]
    return plans


def prune(
    root_uuids: Iterable[str], world: StoredTrees, terms: Terms
) -> list[TreePlan]:
    """Return what becomes of trees that are no longer declared.

    Those that no longer exist are left out.
    """
    return [
        _prune_tree(uuid, world, terms) for uuid in root_uuids if uuid in world.trees
    ]


def list_undeclared(
    trees: Iterable[DeclaredTree], world: StoredTrees, owner: str
) -> list[str]:
    """Return the UUIDs of the roots of trees that an owner declares no longer."""
    parts = [part for tree in trees for part in tree]
    mentioned = {
        provider.root_uuid
        for part in parts
        for provider in (
            world.by_name.get(part.name),
            world.by_uuid.get(part.uuid or NO_UUID),
        )
        if provider
    }
    roots = {
        world.by_uuid[uuid].root_uuid
        for uuid, owners in world.declared.items()
        if owner in owners and uuid in world.by_uuid
    }
    return sorted(roots - mentioned, key=lambda uuid: world.by_uuid[uuid].id)


def _plan_tree(
    parts: DeclaredTree, world: StoredTrees, terms: Terms, claimed: set[str]
) -> TreePlan:
    name, uuid = parts[0].name, parts[0].uuid or NO_UUID
    try:
        check_names(parts, world)
        found = find(parts, world)
        uuid = found[0].uuid if found[0] else uuid
        _claim(found, claimed)
        pieces = _pieces_of(parts, found, world, terms)
    except Undeclarable as exc:
        return TreePlan(Result.REFUSED, name, uuid, reason=str(exc))
    [root, *_] = pieces
    if root.goal:
        # Of a new one, it has just been made up.
        uuid = root.goal.uuid
    result = Result.CHANGED if found[0] else Result.CREATED
    return _assemble(result, name, uuid, pieces, terms)


def _claim(found: Iterable[Provider | None], claimed: set[str]) -> None:
    """Check that no other tree of the file is about the same providers."""
    uuids = {provider.uuid for provider in found if provider}
    if uuids & claimed:
        raise Undeclarable("Another tree of the file declares the same provider.")
    claimed |= uuids


def _prune_tree(root_uuid: str, world: StoredTrees, terms: Terms) -> TreePlan:
    root = world.trees[root_uuid].root
    try:
        pieces = _undeclared(root, {}, world, terms)
    except Undeclarable as exc:
        return TreePlan(Result.REFUSED, root.name, root_uuid, reason=str(exc))
    is_gone = any(piece.removed is root for piece in pieces)
    result = Result.REMOVED if is_gone else Result.CHANGED
    return _assemble(result, root.name, root_uuid, pieces, terms)


def _assemble(
    result: Result, name: str, uuid: str, pieces: list[_Piece], terms: Terms
) -> TreePlan:
    changes = tuple(change for piece in pieces for change in piece.changes)
    drift = tuple(change for piece in pieces for change in piece.drift)
    if not terms.force and any(change.owner for change in changes):
        return TreePlan(Result.CONFLICT, name, uuid, changes, drift)
    return TreePlan(
        result if changes else Result.UNCHANGED,
        name,
        uuid,
        changes,
        drift,
        goals=tuple(piece.goal for piece in pieces if piece.goal),
        removed=tuple(piece.removed for piece in pieces if piece.removed),
        declared={
            key: what for piece in pieces for key, what in piece.declared.items()
        },
    )


def _pieces_of(
    parts: DeclaredTree, found: list[Provider | None], world: StoredTrees, terms: Terms
) -> list[_Piece]:
    uuids = [
        provider.uuid if provider else part.uuid or terms.make_uuid()
        for part, provider in zip(parts, found, strict=True)
    ]
    pieces, parents = [], {}
    for part, provider, uuid in zip(parts, found, uuids, strict=True):
        parent_uuid = None if part.parent is None else uuids[part.parent]
        parent = None if part.parent is None else parts[part.parent].name
        parents[uuid] = parent_uuid
        if provider is None:
            piece = _create(part, uuid, parent_uuid, parent, world, terms)
        else:
            piece = _change(part, provider, parent_uuid, parent, world, terms)
        pieces.append(piece)
    if found[0] is None:
        return pieces
    return pieces + _undeclared(found[0], parents, world, terms)


def _create(
    part: DeclaredProvider,
    uuid: str,
    parent_uuid: str | None,
    parent: str | None,
    world: StoredTrees,
    terms: Terms,
) -> _Piece:
    inventories = {
        name: value for name, value in part.inventories.items() if value is not None
    }
    after = {
        "name": part.name,
        "parent": parent,
        "inventories": inventories,
        "traits": sorted(part.traits),
        "aggregates": sorted(part.aggregates),
    }
    # What was declared of a provider that has gone counts no longer.
    forgotten = {(uuid, owner): Declared() for owner in world.declared.get(uuid, ())}
    declared = _remember(part, parent_uuid, created=True)
    return _Piece(
        Goal(
            None,
            uuid,
            part.name,
            parent_uuid,
            inventories or None,
            part.traits or None,
            part.aggregates or None,
        ),
        (Change(part.name, None, after),),
        declared={**forgotten, (uuid, terms.owner): declared},
    )


def _remember(
    part: DeclaredProvider, parent_uuid: str | None, *, created: bool
) -> Declared:
    return Declared(
        part.name,
        parent_uuid,
        part.inventories,
        part.traits,
        part.aggregates,
        created,
    )


def _change(
    part: DeclaredProvider,
    provider: Provider,
    parent_uuid: str | None,
    parent: str | None,
    world: StoredTrees,
    terms: Terms,
) -> _Piece:
    owners = _owners_of(provider, world, terms)
    where = _compare_place(part, provider, parent_uuid, parent, world, owners)
    goal, changes, drift = _compare(part, provider, parent_uuid, owners)
    wanted = _remember(part, parent_uuid, created=owners.prior.created)
    declared = {
        (provider.uuid, owner): rest
        for owner, other in owners.others.items()
        if (rest := unit.yielded(other, part, parent_uuid)) != other
    }
    if wanted != owners.prior:
        declared[provider.uuid, terms.owner] = wanted
    moved = any(change.before != change.after for change in where)
    return _Piece(
        goal if moved or goal.has_parts else None, (*where, *changes), drift, declared
    )


def _owners_of(provider: Provider, world: StoredTrees, terms: Terms) -> Owners:
    others = dict(world.declared.get(provider.uuid, {}))
    prior = others.pop(terms.owner, Declared())
    return Owners(prior, others, terms.force)


def _compare_place(
    part: DeclaredProvider,
    provider: Provider,
    parent_uuid: str | None,
    parent: str | None,
    world: StoredTrees,
    owners: Owners,
) -> list[Change]:
    """Return how the name or the parent of a provider changes."""
    stored = world.by_uuid.get(provider.parent_uuid or NO_UUID)
    before = {"name": provider.name, "parent": stored.name if stored else None}
    differs = (provider.name, provider.parent_uuid) != (part.name, parent_uuid)
    holder = next(
        (
            owner
            for owner, other in sorted(owners.others.items())
            if unit.is_elsewhere(other, part, parent_uuid)
        ),
        None,
    )
    if not differs and (owners.force or holder is None):
        return []
    return [Change(part.name, before, {"name": part.name, "parent": parent}, holder)]


def _compare(
    part: DeclaredProvider, provider: Provider, parent_uuid: str | None, owners: Owners
) -> tuple[Goal, tuple[Change, ...], tuple[Change, ...]]:
    kinds = [
        unit.compare_inventories(part, provider, owners),
        unit.compare_traits(part, provider, owners),
        unit.compare_aggregates(part, provider, owners),
    ]
    wanted = [kind.wanted for kind in kinds]
    goal = Goal(provider, provider.uuid, part.name, parent_uuid, *wanted)
    changes = tuple(change for kind in kinds for change in kind.changes)
    return goal, changes, tuple(change for kind in kinds for change in kind.drift)


def _undeclared(
    root: Provider, parents: Mapping[str, str | None], world: StoredTrees, terms: Terms
) -> list[_Piece]:
    """Return what becomes of the members that this owner declares no longer.

    Children come before their parents.

    :param parents: the UUIDs of the parents of those that are declared, by their own
    """
    members = world.trees[root.uuid].members
    staying = {uuid for uuid in parents.values() if uuid}
    staying |= parents.keys()
    pieces = []
    for member in reversed(members):
        if member.uuid in parents:
            continue
        piece = _leave(member, member.uuid in staying, world, terms)
        if piece.removed is None and member.parent_uuid:
            staying.add(member.parent_uuid)
        pieces.append(piece)
    return pieces


def _leave(
    member: Provider, has_children: bool, world: StoredTrees, terms: Terms
) -> _Piece:
    """Return what becomes of a provider that this owner does not declare."""
    owners = _owners_of(member, world, terms)
    if owners.prior.is_empty:
        return _Piece()
    may_go = terms.prune and owners.prior.created and not has_children
    if may_go and not owners.others and _is_as_declared(member, owners.prior):
        return _Piece(
            changes=(Change(member.name, {"name": member.name}, None),), removed=member
        )
    nothing = DeclaredProvider(member.name)
    goal, changes, drift = _compare(nothing, member, member.parent_uuid, owners)
    rest = Declared(created=owners.prior.created)
    left = Change(member.name, None, {"name": member.name})
    return _Piece(
        goal if goal.has_parts else None,
        changes,
        (left, *drift),
        {} if rest == owners.prior else {(member.uuid, terms.owner): rest},
    )


def _is_as_declared(member: Provider, prior: Declared) -> bool:
    """Return whether a provider has nothing that the owner has not declared.

    :raises Undeclarable: it has, but some of it is in use
    """
    is_so = (
        member.traits <= prior.traits
        and member.aggregates <= prior.aggregates
        and all(
            is_same(unit.stored_of(inventory), prior.inventories.get(name))
            for name, inventory in member.inventories.items()
        )
    )
    for name, inventory in sorted(member.inventories.items()):
        if is_so and inventory.used:
            raise Undeclarable(
                f"{inventory.used} {name} of {member.name} are in use, so it cannot be "
                "removed."
            )
    return is_so


@dataclasses.dataclass(frozen=True, slots=True)
class Declaration:
    """What an owner declares: trees, and the names of traits and resource classes.

    ``names`` are those of aggregates and projects.
    """

    trees: Sequence[DeclaredTree]
    terms: Terms
    traits: frozenset[str] = frozenset()
    resource_classes: frozenset[str] = frozenset()
    names: Names = NO_NAMES


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of the trees of a declaration, in its order, and of pruned ones.

    ``traits`` and ``resource_classes`` are the names that are new, ``names`` what
    becomes of those of aggregates and projects.
    """

    plans: Sequence[TreePlan]
    traits: Sequence[str]
    resource_classes: Sequence[str]
    names: Sequence[Change] = ()

"""The changes that a declaration makes: from values to values.

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

A unit that another owner declares with another value is a conflict: nothing of the tree
is changed, unless that is forced. A provider is removed only with ``prune``, if this
owner created it, and if it has nothing that this owner has not declared.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from placement.declaration import grouping, unit
from placement.declaration.outcome import NO_UUID, Goal, Result, Terms, TreePlan
from placement.declaration.unit import Owners
from placement.declaration.world import (
    Homes,
    Match,
    StoredTrees,
    Undeclarable,
    check_names,
    find_homes,
    list_undeclared,
    match,
)
from placement.model.declaration import (
    Change,
    Declared,
    DeclaredProvider,
    DeclaredTree,
    is_same,
)
from placement.model.tree import Provider


class _Piece(NamedTuple):
    """The plan for one provider of a tree."""

    goal: Goal | None = None
    changes: tuple[Change, ...] = ()
    drift: tuple[Change, ...] = ()
    declared: Mapping[tuple[str, str], Declared] = {}
    removed: Provider | None = None


class _Parent(NamedTuple):
    """The parent that a provider is to have, if any."""

    uuid: str | None = None
    name: str | None = None


def plan(
    trees: Iterable[DeclaredTree],
    world: StoredTrees,
    terms: Terms,
    roots: Iterable[str] | None = None,
) -> list[TreePlan]:
    """Return the plans for declared trees, in their order.

    Those of trees that are no longer declared follow, if they are to be pruned.

    :param roots: the UUIDs of their roots; None for all that this owner declared
    """
    declared = list(trees)
    matches = match(declared, world)
    if roots is None:
        prunes = terms.prune and terms.complete
        roots = list_undeclared(matches, world, terms.owner) if prunes else ()
    roots = list(roots)
    homes = find_homes(matches, world)
    left = _list_left(matches, homes, world)
    planner = _Planner(world, terms)
    plans = [
        planner.plan_tree(parts, providers, left.get(number, ()))
        for number, (parts, providers) in enumerate(zip(declared, matches, strict=True))
    ]
    plans += [planner.prune_tree(uuid, left.get(uuid, ())) for uuid in roots]
    places = {uuid: len(declared) + number for number, uuid in enumerate(roots)}
    return grouping.settle(plans, world, {**homes, **places}, terms.planned)


def _list_left(
    matches: Iterable[Match], homes: Homes, world: StoredTrees
) -> dict[int | str, list[Provider]]:
    """Return the providers that are not declared, children before their parents.

    They are by the number of the tree that they belong to, or by their stored root.
    """
    declared = {provider.uuid for each in matches for provider in each if provider}
    left: dict[int | str, list[Provider]] = {}
    for tree in world.trees.values():
        for member in reversed(tree.members):
            if member.uuid not in declared:
                home = homes.get(member.uuid, member.root_uuid)
                left.setdefault(home, []).append(member)
    return left


class _Planner:
    """Plans for the trees of a declaration, one by one."""

    def __init__(self, world: StoredTrees, terms: Terms) -> None:
        self._world = world
        self._terms = terms

    def plan_tree(
        self, parts: DeclaredTree, providers: Match, left: Iterable[Provider]
    ) -> TreePlan:
        """Return the plan for a declared tree.

        :param left: the stored providers that belong to it, and are not declared
        """
        root = providers[0]
        name, uuid = parts[0].name, root.uuid if root else parts[0].uuid or NO_UUID
        try:
            check_names(parts, self._world)
            pieces = [*self._pieces_of(parts, providers), *self._undeclared(left)]
        except Undeclarable as exc:
            return TreePlan(Result.REFUSED, name, uuid, reason=str(exc))
        if pieces[0].goal:
            # The UUID of a new root has just been made up.
            uuid = pieces[0].goal.uuid
        result = Result.CHANGED if root else Result.CREATED
        return self._assemble(result, name, uuid, pieces)

    def prune_tree(self, root_uuid: str, left: Iterable[Provider]) -> TreePlan:
        """Return the plan for a tree that is no longer declared, by its root."""
        if root_uuid not in self._world.trees:
            return TreePlan(Result.UNCHANGED, root_uuid, root_uuid)
        root = self._world.trees[root_uuid].root
        try:
            pieces = self._undeclared(left)
        except Undeclarable as exc:
            return TreePlan(Result.REFUSED, root.name, root_uuid, reason=str(exc))
        is_gone = any(piece.removed is root for piece in pieces)
        result = Result.REMOVED if is_gone else Result.CHANGED
        return self._assemble(result, root.name, root_uuid, pieces)

    def _assemble(
        self, result: Result, name: str, uuid: str, pieces: Sequence[_Piece]
    ) -> TreePlan:
        changes = tuple(change for piece in pieces for change in piece.changes)
        drift = tuple(change for piece in pieces for change in piece.drift)
        if not self._terms.force and any(change.owner for change in changes):
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

    def _pieces_of(self, parts: DeclaredTree, providers: Match) -> Iterator[_Piece]:
        uuids = [
            provider.uuid if provider else part.uuid or self._terms.make_uuid()
            for part, provider in zip(parts, providers, strict=True)
        ]
        for part, provider, uuid in zip(parts, providers, uuids, strict=True):
            parent = _Parent()
            if part.parent is not None:
                parent = _Parent(uuids[part.parent], parts[part.parent].name)
            if provider is None:
                yield self._create(part, uuid, parent)
            else:
                yield self._change(part, provider, parent)

    def _create(self, part: DeclaredProvider, uuid: str, parent: _Parent) -> _Piece:
        inventories = {
            name: value for name, value in part.inventories.items() if value is not None
        }
        after = {
            "name": part.name,
            "parent": parent.name,
            "inventories": inventories,
            "traits": sorted(part.traits),
            "aggregates": sorted(part.aggregates),
        }
        # Declarations of a provider that has gone no longer count.
        owners = self._world.declared.get(uuid, ())
        forgotten = {(uuid, owner): Declared() for owner in owners}
        own = {(uuid, self._terms.owner): _remember(part, parent, created=True)}
        belongings = (inventories or None, part.traits or None, part.aggregates or None)
        return _Piece(
            Goal(None, uuid, part.name, parent.uuid, *belongings),
            (Change(part.name, None, after),),
            declared=forgotten | own,
        )

    def _change(
        self, part: DeclaredProvider, provider: Provider, parent: _Parent
    ) -> _Piece:
        owners = self._owners_of(provider)
        where = self._compare_place(part, provider, parent, owners)
        goal, changes, drift = _compare(part, provider, parent.uuid, owners)
        own = _remember(part, parent, created=owners.prior.created)
        declared = {
            (provider.uuid, owner): rest
            for owner, other in owners.others.items()
            if (rest := unit.yielded(other, part, parent.uuid)) != other
        }
        if own != owners.prior:
            declared[provider.uuid, self._terms.owner] = own
        moved = any(change.before != change.after for change in where)
        changed = goal if moved or goal.has_parts else None
        return _Piece(changed, (*where, *changes), drift, declared)

    def _owners_of(self, provider: Provider) -> Owners:
        others = dict(self._world.declared.get(provider.uuid, {}))
        prior = others.pop(self._terms.owner, Declared())
        return Owners(prior, others, self._terms.force)

    def _compare_place(
        self,
        part: DeclaredProvider,
        provider: Provider,
        parent: _Parent,
        owners: Owners,
    ) -> list[Change]:
        """Return how the name or the parent of a provider changes."""
        stored = self._world.by_uuid.get(provider.parent_uuid or NO_UUID)
        before = {"name": provider.name, "parent": stored.name if stored else None}
        differs = (provider.name, provider.parent_uuid) != (part.name, parent.uuid)
        holders = [
            owner
            for owner, other in sorted(owners.others.items())
            if unit.is_elsewhere(other, part, parent.uuid)
        ]
        if not differs and (owners.force or not holders):
            return []
        after = {"name": part.name, "parent": parent.name}
        return [Change(part.name, before, after, holders[0] if holders else None)]

    def _undeclared(self, left: Iterable[Provider]) -> list[_Piece]:
        """Return the plans for the members that this owner declares no longer.

        :param left: children before their parents; those that move elsewhere are not
            there
        """
        staying, pieces = set(), []
        for member in left:
            piece = self._leave(member, member.uuid in staying)
            if piece.removed is None:
                staying.add(member.parent_uuid)
            pieces.append(piece)
        return pieces

    def _leave(self, member: Provider, has_children: bool) -> _Piece:
        """Return the plan for a provider that this owner does not declare."""
        owners = self._owners_of(member)
        if owners.prior.is_empty:
            return _Piece()
        may_go = self._terms.prune and owners.prior.created and not has_children
        if may_go and not owners.others and _is_as_declared(member, owners.prior):
            gone = Change(member.name, {"name": member.name}, None)
            return _Piece(changes=(gone,), removed=member)
        nothing = DeclaredProvider(member.name)
        goal, changes, drift = _compare(nothing, member, member.parent_uuid, owners)
        rest = Declared(created=owners.prior.created)
        left = Change(member.name, None, {"name": member.name})
        key = member.uuid, self._terms.owner
        return _Piece(
            goal if goal.has_parts else None,
            changes,
            (left, *drift),
            {} if rest == owners.prior else {key: rest},
        )


def _remember(part: DeclaredProvider, parent: _Parent, *, created: bool) -> Declared:
    belongings = (part.inventories, part.traits, part.aggregates)
    return Declared(part.name, parent.uuid, *belongings, created)


def _compare(
    part: DeclaredProvider, provider: Provider, parent_uuid: str | None, owners: Owners
) -> tuple[Goal, tuple[Change, ...], tuple[Change, ...]]:
    kinds = [unit.compare(kind, part, provider, owners) for kind in unit.ABSENT]
    wanted = [kind.wanted for kind in kinds]
    goal = Goal(provider, provider.uuid, part.name, parent_uuid, *wanted)
    changes = tuple(change for kind in kinds for change in kind.changes)
    return goal, changes, tuple(change for kind in kinds for change in kind.drift)


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

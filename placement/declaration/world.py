"""The stored trees, and which of their providers a declared tree is about."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from placement.model.declaration import Declarations, DeclaredProvider, DeclaredTree
from placement.model.resource_class import UNKNOWN_CLASS
from placement.model.trait import UNKNOWN_TRAIT, is_custom
from placement.model.tree import Provider, Tree
from placement.questions.name import complain


class Undeclarable(Exception):
    """A tree cannot be as it is declared. The message says why."""


@dataclasses.dataclass(frozen=True, slots=True)
class StoredTrees:
    """The stored trees that matter to a declaration.

    ``trees`` are by UUID of the root, providers by UUID and by name. ``taken`` are
    names that the database does not distinguish from those of other providers.
    """

    trees: Mapping[str, Tree]
    by_uuid: Mapping[str, Provider]
    by_name: Mapping[str, Provider]
    declared: Declarations
    class_names: Collection[str]
    trait_names: Collection[str]
    taken: Collection[str] = frozenset()


def world_of(
    trees: Iterable[Tree],
    declared: Declarations,
    class_names: Collection[str],
    trait_names: Collection[str],
    taken: Collection[str] = frozenset(),
) -> StoredTrees:
    """Return the world of some trees."""
    by_root = {tree.root.uuid: tree for tree in trees}
    members = [member for tree in by_root.values() for member in tree.members]
    return StoredTrees(
        by_root,
        {member.uuid: member for member in members},
        {member.name: member for member in members},
        declared,
        class_names,
        trait_names,
        taken,
    )


# The stored providers that a declared tree is about, None for new ones.
Match: TypeAlias = Sequence[Provider | None]
# The numbers of the declared trees that stored providers belong to.
Homes: TypeAlias = Mapping[str, int]


def match(trees: Sequence[DeclaredTree], world: StoredTrees) -> list[Match]:
    """Return the stored providers that declared trees are about.

    A UUID stands for its provider, wherever that is. A name stands for a root of that
    name; or for a child in the same tree, or in another one that is declared as well.
    """
    uuids = {part.uuid for parts in trees for part in parts if part.uuid}
    roots = [_find_root(parts[0], uuids, world) for parts in trees]
    declared = {root.root_uuid for root in roots if root}
    return [
        [root, *(_find_child(part, uuids, declared, world) for part in parts[1:])]
        for parts, root in zip(trees, roots, strict=True)
    ]


def _find(
    part: DeclaredProvider, uuids: Collection[str], world: StoredTrees
) -> Provider | None:
    if part.uuid:
        return world.by_uuid.get(part.uuid)
    named = world.by_name.get(part.name)
    return named if named and named.uuid not in uuids else None


def _find_root(
    part: DeclaredProvider, uuids: Collection[str], world: StoredTrees
) -> Provider | None:
    root = _find(part, uuids, world)
    return root if root and (part.uuid or root.parent_uuid is None) else None


def _find_child(
    part: DeclaredProvider,
    uuids: Collection[str],
    declared: Collection[str],
    world: StoredTrees,
) -> Provider | None:
    child = _find(part, uuids, world)
    if child is None or part.uuid:
        return child
    is_below = child.parent_uuid is not None and child.root_uuid in declared
    return child if is_below else None


def find_homes(matches: Iterable[Match], world: StoredTrees) -> dict[str, int]:
    """Return the numbers of the trees that stored providers belong to.

    An undeclared provider stays below its parent, wherever that moves.
    """
    homes = {
        provider.uuid: number
        for number, each in enumerate(matches)
        for provider in each
        if provider
    }
    for tree in world.trees.values():
        for member in tree.members:
            if member.uuid not in homes and member.parent_uuid in homes:
                homes[member.uuid] = homes[member.parent_uuid]
    return homes


def list_undeclared(
    matches: Iterable[Match], world: StoredTrees, owner: str
) -> list[str]:
    """Return the UUIDs of the roots of trees that an owner declares no longer."""
    declared = {provider.uuid for each in matches for provider in each if provider}
    roots = {
        world.by_uuid[uuid].root_uuid
        for uuid, owners in world.declared.items()
        if owner in owners and uuid in world.by_uuid
    }
    return sorted(roots - declared, key=lambda uuid: world.by_uuid[uuid].id)


def check_names(parts: DeclaredTree, world: StoredTrees) -> None:
    """Check that standard traits and resource classes exist.

    :raises Undeclarable: one does not
    """
    for part in parts:
        for names, existing, complaint in (
            (part.traits, world.trait_names, UNKNOWN_TRAIT),
            (part.inventories, world.class_names, UNKNOWN_CLASS),
        ):
            for name in sorted(names):
                if not (is_custom(name) or name in existing):
                    raise Undeclarable(complain(name, existing, complaint))

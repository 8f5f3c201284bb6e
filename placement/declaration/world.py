"""What is stored, and which stored providers a declared tree is about."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping

from placement.model.declaration import Declarations, DeclaredProvider, DeclaredTree
from placement.model.resource_class import UNKNOWN_CLASS
from placement.model.trait import UNKNOWN_TRAIT, is_custom
from placement.model.tree import Provider, Tree
from placement.questions.name import complain


class Undeclarable(Exception):
    """A tree cannot be as it is declared. The message says why."""


@dataclasses.dataclass(frozen=True, slots=True)
class StoredTrees:
    """What is stored, as far as a declaration can matter to it.

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
    known = {tree.root.uuid: tree for tree in trees}
    members = [member for tree in known.values() for member in tree.members]
    return StoredTrees(
        known,
        {member.uuid: member for member in members},
        {member.name: member for member in members},
        declared,
        class_names,
        trait_names,
        taken,
    )


def find(parts: DeclaredTree, world: StoredTrees) -> list[Provider | None]:
    """Return the providers that a declared tree is about, None for new ones.

    :raises Undeclarable: what is declared is elsewhere, or a name is taken
    """
    root = _find_root(parts[0], world)
    members = world.trees[root.uuid].members if root else ()
    below = {member.name: member for member in members if member is not root}
    found = [root, *(_find_child(part, root, below, world) for part in parts[1:])]
    known = [provider.uuid for provider in found if provider]
    if len(set(known)) < len(known):
        raise Undeclarable("A provider is declared twice, by name and by UUID.")
    for part, provider in zip(parts, found, strict=True):
        if provider is None or provider.name != part.name:
            _check_is_free(part.name, world)
    return found


def _find_root(part: DeclaredProvider, world: StoredTrees) -> Provider | None:
    if part.uuid is None:
        known = world.by_name.get(part.name)
        return known if known and known.parent_uuid is None else None
    known = world.by_uuid.get(part.uuid)
    if known and known.parent_uuid is not None:
        raise Undeclarable(
            f"Resource provider {part.uuid} is not a root: it is in the tree of "
            f"{known.root_uuid}."
        )
    return known


def _find_child(
    part: DeclaredProvider,
    root: Provider | None,
    below: Mapping[str, Provider],
    world: StoredTrees,
) -> Provider | None:
    if part.uuid is None:
        return below.get(part.name)
    known = world.by_uuid.get(part.uuid)
    if known and (root is None or known.root_uuid != root.uuid):
        raise Undeclarable(
            f"Resource provider {part.uuid} is in another tree, that of "
            f"{known.root_uuid}."
        )
    if known and known is root:
        raise Undeclarable(f"Resource provider {part.uuid} is the root of the tree.")
    return known


def _check_is_free(name: str, world: StoredTrees) -> None:
    holder = world.by_name.get(name)
    if holder:
        raise Undeclarable(
            f"The name {name} is taken by resource provider {holder.uuid}."
        )
    if name in world.taken:
        raise Undeclarable(
            f"The name {name} is taken: the database knows it as another's."
        )


def check_names(parts: DeclaredTree, world: StoredTrees) -> None:
    """Check that standard traits and resource classes exist.

    :raises Undeclarable: one does not
    """
    for part in parts:
        for names, known, complaint in (
            (part.traits, world.trait_names, UNKNOWN_TRAIT),
            (part.inventories, world.class_names, UNKNOWN_CLASS),
        ):
            for name in sorted(names):
                if not _may_exist(name, known):
                    raise Undeclarable(complain(name, known, complaint))


def _may_exist(name: str, known: Collection[str]) -> bool:
    return is_custom(name) or name in known

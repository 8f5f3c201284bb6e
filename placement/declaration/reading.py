"""Reads stored trees: those that matter to a declaration, and all declared ones."""

import unicodedata
from collections.abc import Collection, Iterable

from placement.declaration import unit
from placement.declaration.outcome import Terms
from placement.declaration.world import StoredTrees, world_of
from placement.forest import loading, reading
from placement.forest.cache import CachedForest
from placement.forest.vocabulary import Vocabulary
from placement.model.declaration import DeclaredTree, Remembered
from placement.model.tree import Tree
from placement.objects import declared, resource_provider
from placement.objects.transaction import Connection


def load(
    connection: Connection,
    trees: Collection[DeclaredTree],
    terms: Terms,
    *,
    further: Iterable[str] = (),
    cache: CachedForest | None = None,
) -> StoredTrees:
    """Return the stored trees that a declaration mentions.

    Trees that are no longer declared are read as well, if they are to be pruned.

    :param further: the UUIDs of members of other trees
    :param cache: keeps the forest, if it is kept
    """
    names = {part.name for parts in trees for part in parts}
    uuids = {part.uuid for parts in trees for part in parts if part.uuid}
    uuids.update(further)
    if terms.prune and terms.complete:
        uuids.update(declared.load_all(connection, terms.owner))
    words, loaded, taken = _load(connection, names, uuids, cache)
    members = {member.uuid for tree in loaded for member in tree.members}
    return world_of(
        loaded,
        declared.load(connection, members | uuids),
        words.class_ids.keys(),
        words.trait_ids.keys(),
        taken,
    )


def list_members(connection: Connection, trees: Collection[DeclaredTree]) -> list[str]:
    """Return the UUIDs of the stored providers that a declaration mentions."""
    names = {part.name for parts in trees for part in parts}
    uuids = {part.uuid for parts in trees for part in parts if part.uuid}
    places = resource_provider.list_places(connection, names, uuids)
    return [place.uuid for place in places]


def list_declared(
    connection: Connection,
    owner: str | None,
    *,
    drift: bool = False,
    cache: CachedForest | None = None,
) -> list[Remembered]:
    """Return declarations, by owner and then by UUID of the provider.

    :param owner: whose declarations; None means those of all
    :param drift: leave out providers that are as declared
    :param cache: keeps the forest, if it is kept
    :raises UnusableTable: there is no table to remember declarations in
    """
    declared.check_table(connection)
    everything = declared.load_all(connection, owner)
    _, trees, _ = _load(connection, set(), set(everything), cache)
    by_uuid = {member.uuid: member for tree in trees for member in tree.members}
    every = []
    for uuid, owners in everything.items():
        provider = by_uuid.get(uuid)
        for each, what in owners.items():
            name = provider.name if provider else what.name
            differences = tuple(unit.drift_of(what, provider, name or uuid))
            root_uuid = provider.root_uuid if provider else None
            every.append(Remembered(each, uuid, name, root_uuid, what, differences))
    every.sort(key=lambda each: (each.owner, each.uuid))
    return [each for each in every if each.drift or not drift]


def _load(
    connection: Connection,
    names: set[str],
    uuids: set[str],
    cache: CachedForest | None,
) -> tuple[Vocabulary, list[Tree], set[str]]:
    """Return the trees with these names and UUIDs, as ``_find`` finds them."""
    kept = cache.load(connection) if cache else None
    root_ids, taken = _find(connection, names, uuids)
    if kept:
        trees = [kept.forest.tree(root_id) for root_id in sorted(root_ids)]
        return kept.forest.vocabulary, [tree for tree in trees if tree], taken
    words = loading.load_vocabulary(connection)
    return words, list(reading.load(connection, words, root_ids).values()), taken


def _find(
    connection: Connection, names: set[str], uuids: set[str]
) -> tuple[set[int], set[str]]:
    """Return the roots of the trees with these names and UUIDs.

    The second part has the names that the database may equate with stored ones.
    """
    places = resource_provider.list_places(connection, names, uuids)
    similar = {
        _fold(place.name)
        for place in places
        if place.name and place.name not in names and place.uuid not in uuids
    }
    roots = {place.root_id for place in places if place.root_id is not None}
    return roots, {name for name in names if _fold(name) in similar}


def _fold(name: str) -> str:
    """Return a name as databases compare it: no case, accents or trailing spaces."""
    apart = unicodedata.normalize("NFKD", name.rstrip())
    return "".join(each for each in apart.casefold() if not unicodedata.combining(each))

"""A forest with the lists of changes that it has seen, and how it follows them."""

import time
from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

from placement import measure
from placement.forest import fingerprint, loading, reading
from placement.forest.fingerprint import Fingerprint
from placement.forest.forest import Forest
from placement.forest.own_change import OwnChanges
from placement.forest.vocabulary import Vocabulary
from placement.model.tree import Tree
from placement.objects import change_log
from placement.objects.change_log import Seen
from placement_foundation.database import storage
from placement_foundation.observing import telemetry


class Kept:
    """A forest, with the lists of changes that it has seen.

    ``difference`` is by how much the fingerprint of the database exceeds the forest's;
    None if they were not compared yet: there is time for that after the start.
    ``origin`` is the same for all that come from one reading of the whole database:
    what was derived from another one may lack changes that were not recorded. ``made``
    is when it was made, by the clock of transactions.
    """

    __slots__ = ("difference", "forest", "made", "origin", "seen")

    def __init__(
        self,
        grown: Forest,
        seen: Seen,
        difference: Fingerprint | None,
        origin: object,
    ) -> None:
        self.forest = grown
        self.seen = seen
        self.difference = difference
        self.origin = origin
        self.made = time.monotonic()

    def compared(self, difference: Fingerprint | None) -> "Kept":
        """Return the same, with its difference from the database."""
        return Kept(self.forest, self.seen, difference, self.origin)

    def is_newer(self, connection: sa.Connection) -> bool:
        """Return whether it may be of a later moment than a transaction sees."""
        return self.made >= storage.began(connection)


def read_all(connection: sa.Connection, seen: Seen, *, compared: bool = True) -> Kept:
    """Return the whole forest, read afresh.

    :param seen: the lists of changes at the moment of the transaction
    :param compared: whether to compare its fingerprint with that of the database
    """
    telemetry.record(measure.FOREST_REFRESHES, extent="all")
    grown = loading.load(connection)
    difference = _excess(connection, grown) if compared else None
    return Kept(grown, seen, difference, object())


def follow(
    connection: sa.Connection,
    base: Kept,
    changes: Mapping[int, str],
    own: OwnChanges,
) -> Kept:
    """Return a forest with everything that has changed as it is now.

    :param changes: the lists of changes that are other ones at the moment of the
        transaction, by shard
    :param own: changes that need not be read
    """
    if not changes:
        return base
    seen = base.seen.replace(changes)
    words = base.forest.vocabulary
    if change_log.NAMES in changes:
        words = loading.load_vocabulary(connection)
    roots, shards = base.seen.changed(changes)
    changed = _list_changed(connection, base.forest, roots, shards)
    if changed is None or _are_renamed(base.forest.vocabulary, words):
        return read_all(connection, seen)
    telemetry.record(measure.FOREST_REFRESHES, extent="changes")
    known = own.find(changed, base.forest)
    unknown = changed.keys() - known.keys()
    trees = reading.load(connection, words, unknown, base.forest.provider) | known
    grown = base.forest.replace(words, changed, trees)
    is_restored = base.seen.is_newer(changes) and not base.is_newer(connection)
    # Where a list does not go back, nobody knows whether the database was restored.
    origin = object() if is_restored or shards else base.origin
    return Kept(grown, seen, base.difference, origin)


def _list_changed(
    connection: sa.Connection,
    grown: Forest,
    roots: Mapping[int, str],
    shards: Sequence[int],
) -> Mapping[int, str] | None:
    """Return the trees to replace; None if they are so many that all may be.

    :param roots: the trees that are known to have changed, and by which write
    :param shards: those in which any tree may have changed
    """
    most = reading.MOST_LISTED_ROOTS
    if shards:
        # About as many as there are in them.
        if len(shards) * grown.size > most * change_log.SHARDS:
            return None
        there = change_log.load_roots(connection, shards)
        gone = [
            root_id
            for root_id in grown.roots_from(0)
            if root_id % change_log.SHARDS in shards
        ]
        roots = {**roots, **dict.fromkeys((*gone, *there), "")}
    return roots if len(roots) <= most else None


def check(connection: sa.Connection, current: Kept) -> Kept:
    """Compare sums over a forest with those over the database.

    Return the same, or another one, read afresh: then the database has changed in a way
    that was not recorded. Compare both by ``are_alike``: it may not concern the forest.
    """
    excess = _excess(connection, current.forest)
    if excess == current.difference:
        return current
    if current.difference is None and not any(excess):
        # Whatever was changed since it was read has been recorded.
        return current.compared(excess)
    fresh = read_all(connection, current.seen)
    if current.difference is None and are_alike(fresh, current):
        # Processes share the memory of what was read before they forked.
        return current.compared(fresh.difference)
    return fresh


def are_alike(one: Kept, other: Kept) -> bool:
    """Return whether two forests have the same fingerprint.

    They differ in nothing if only rows have changed that no answer depends on, such as
    allocations of what is in no inventory.
    """
    return one is other or fingerprint.of_forest(one.forest) == fingerprint.of_forest(
        other.forest
    )


def _excess(connection: sa.Connection, grown: Forest) -> Fingerprint:
    return fingerprint.between(
        fingerprint.load(connection), fingerprint.of_forest(grown)
    )


def _are_renamed(before: Vocabulary, after: Vocabulary) -> bool:
    """Return whether a known id has another name now."""
    return before is not after and any(
        new.get(key, word) != word
        for old, new in (
            (before.classes, after.classes),
            (before.traits, after.traits),
        )
        for key, word in old.items()
    )


def is_exact(connection: sa.Connection, current: Kept, root_ids: Iterable[int]) -> bool:
    """Return whether some trees, and all names, are exactly those in the database."""
    mine, words = current.forest.vocabulary, loading.load_vocabulary(connection)
    if _names(mine) != _names(words):
        return False
    roots = set(root_ids)
    trees = reading.load(connection, words, roots, current.forest.provider)
    return all(
        _rows(current.forest.tree(root_id)) == _rows(trees.get(root_id))
        for root_id in roots
    )


def _names(words: Vocabulary) -> tuple[object, ...]:
    return words.classes, words.traits, words.times


def _rows(tree: Tree | None) -> list[object]:
    return list(map(reading.values_of, tree.members)) if tree else []

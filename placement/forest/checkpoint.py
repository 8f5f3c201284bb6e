"""A forest at a position in the change log, and how it follows the log."""

import dataclasses
import itertools
import time
from collections.abc import Collection, Mapping, Sequence

from placement import measure
from placement.forest import loading, reading
from placement.forest.forest import Forest
from placement.forest.vocabulary import Vocabulary
from placement.model.tree import Tree
from placement.objects import change_log
from placement.objects.change_log import LogPosition
from placement.objects.transaction import Connection
from placement_foundation.observing import telemetry


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A forest, and the position in the change log up to which it has all changes.

    ``origin`` is the same for all checkpoints that come from one reading of the whole
    database: those of another reading may lack changes that were not recorded. ``made``
    is the time of the checkpoint, by the clock of transactions.
    """

    forest: Forest
    position: LogPosition
    origin: object = dataclasses.field(default_factory=object)
    made: float = dataclasses.field(default_factory=time.monotonic)


def read_all(
    connection: Connection, position: LogPosition, former: Forest | None = None
) -> Checkpoint:
    """Return the whole forest, read afresh.

    :param position: that of the transaction
    :param former: unchanged values are taken from there, to share their memory
    """
    telemetry.record(measure.FOREST_REFRESHES, extent="all")
    return Checkpoint(loading.load(connection, former=former), position)


def follow(
    connection: Connection, base: Checkpoint, lists: Mapping[int, str]
) -> Checkpoint:
    """Return a checkpoint with all changed trees and names as they are now.

    :param lists: the lists of changes that differ at the moment of the transaction, by
        shard
    """
    if not lists:
        return base
    position = base.position.replace(lists)
    words = base.forest.vocabulary
    if change_log.NAMES in lists:
        words = loading.load_vocabulary(connection)
    changed = base.position.changed(lists)
    root_ids = _list_changed(connection, base.forest, changed.roots, changed.shards)
    if root_ids is None or _are_renamed(base.forest.vocabulary, words):
        return read_all(connection, position)
    telemetry.record(measure.FOREST_REFRESHES, extent="changes")
    trees = reading.load(connection, words, root_ids)
    grown = base.forest.replace(words, root_ids, trees)
    # Where a list does not go back, a restore of the database cannot be ruled out.
    may_be_restored = changed.is_backward or changed.shards
    return Checkpoint(grown, position, object() if may_be_restored else base.origin)


def _list_changed(
    connection: Connection,
    grown: Forest,
    root_ids: Collection[int],
    shards: Sequence[int],
) -> Collection[int] | None:
    """Return the trees to replace; None if there are too many of them.

    :param root_ids: the trees that are listed as changed
    :param shards: the shards in which any tree may have changed
    """
    most = reading.MOST_LISTED_ROOTS
    if shards:
        # The shards have about as many trees.
        if len(shards) * grown.size > most * change_log.SHARDS:
            return None
        there = change_log.load_roots(connection, shards)
        gone = [
            root_id
            for root_id in grown.roots_from(0)
            if root_id % change_log.SHARDS in shards
        ]
        root_ids = {*root_ids, *gone, *there}
    return root_ids if len(root_ids) <= most else None


def _are_renamed(before: Vocabulary, after: Vocabulary) -> bool:
    """Return whether an id has another name now."""
    return before is not after and any(
        new.get(key, word) != word
        for old, new in (
            (before.classes, after.classes),
            (before.traits, after.traits),
        )
        for key, word in old.items()
    )


def are_same(one: Forest, other: Forest) -> bool:
    """Return whether two forests have exactly the same providers and names."""
    pairs = itertools.zip_longest(one.everything.trees, other.everything.trees)
    return _names(one.vocabulary) == _names(other.vocabulary) and all(
        _rows(tree) == _rows(other_tree) for tree, other_tree in pairs
    )


def _names(words: Vocabulary) -> tuple[object, ...]:
    return words.classes, words.traits


def _rows(tree: Tree | None) -> list[object]:
    return list(map(reading.values_of, tree.members)) if tree else []

"""The forest that a process keeps between requests. Each brings it up to date."""

import dataclasses
import itertools
import threading
import time
from collections.abc import Callable, Collection, Sequence

from oslo_log import log

from placement import measure
from placement.db import models
from placement.forest import fingerprint, loading, reading
from placement.forest.fingerprint import Comparison
from placement.forest.forest import Forest
from placement.forest.vocabulary import Vocabulary
from placement.model.member import members_of
from placement.model.tree import Tree
from placement.objects import change_log, database_sum
from placement.objects.change_log import Changed, LogPosition
from placement.objects.journal.keeping import Keeper
from placement.objects.transaction import Connection
from placement_foundation.database.storage import Database
from placement_foundation.observing import telemetry
from placement_foundation.serving import interpreter

LOG = log.getLogger(__name__)

# The pause between two comparisons of sums: so many seconds, or so many times as long
# as the database took for the last one, if that is longer.
CHECK_EVERY = 3
REST = 50
# How long a comparison may be overdue before a request makes it, in seconds: a server
# may run no threads beside its requests.
OVERDUE = 3
# For how long other threads leave a comparison to the thread that has begun it, in
# seconds.
LONGEST_CHECK = 60
# The intervals at which a thread looks whether a comparison is due, and at which it
# reads the whole forest afresh, in seconds. Chores vary them by half: ten minutes at
# most.
WATCH_EVERY = 1
READ_EVERY = 400
# The time without an unrecorded change after which the forest is kept again, in
# seconds.
QUIET = 300


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A forest, and the position in the change log up to which it has all changes."""

    forest: Forest
    position: LogPosition


@telemetry.timed("load")
def load(connection: Connection, cache: "CachedForest | None" = None) -> Forest:
    """Return the forest as the transaction sees it: kept, or read afresh.

    Use it after the transaction has ended, since it needs no database.
    """
    current = cache.load(connection) if cache else None
    return current.forest if current else loading.load(connection)


def warm_up(database: Database, cache: "CachedForest") -> None:
    """Load the forest, if possible; otherwise the first request does it.

    Processes that fork afterwards share the memory.
    """
    try:
        with interpreter.without_collecting():
            database.read(cache.load)
    except Exception as exc:
        LOG.warning("the forest is not loaded before the first request: %s", exc)


class CachedForest:
    """The forest of one database, kept between requests.

    A forest never changes; the cache replaces it, so threads may go on using the one
    they have. Five fields change. ``_current`` and ``_distrusted_since`` are the state:

    ==========  ============  =================  =====================================
    state       ``_current``  ``_distrusted_…``  a request gets
    ==========  ============  =================  =====================================
    empty       None          None               a forest read afresh, which is kept
                                                 if changes are recorded
    kept        a forest      None               this one, brought up to date by the
                                                 change log; the result is kept
    distrusted  a forest, or  a time             no forest: it reads the cloud itself
                None
    ==========  ============  =================  =====================================

    From *kept* it becomes *empty* when changes are not recorded any more, and
    *distrusted* when sums over the database show a change that nothing recorded. While
    it is distrusted, ``watch`` goes on bringing it up to date and comparing sums. After
    ``QUIET`` seconds without another such change it is *kept* again.

    ``_compared`` has the sums of the last comparison with the database, and
    ``_next_check`` is the time of the next one. ``_has_complained`` is whether the log
    has the warning that rows are missing.

    :param journal: gets a gap when changes without a record are found
    :param clock: returns the time, in seconds
    """

    def __init__(
        self,
        journal: Keeper | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._current: Checkpoint | None = None
        self._distrusted_since: float | None = None
        self._compared = fingerprint.NOTHING
        self._next_check = clock() + CHECK_EVERY
        self._has_complained = False
        self._replacing = threading.Lock()
        self._loading = threading.Lock()

    @property
    def is_keeping(self) -> bool:
        """Whether there is a forest, and it is trusted."""
        return self._current is not None and self._distrusted_since is None

    def load(self, connection: Connection) -> Checkpoint | None:
        """Return the forest as the transaction sees it; None if none is kept."""
        # The transaction has read nothing yet, so its snapshot is later than this.
        base = self._current
        if self._distrusted_since is not None:
            return None
        current = self._follow(connection, base)
        if current and self._clock() >= self._next_check + OVERDUE:
            return self._check(connection, current)
        return current

    def watch(self, database: Database) -> None:
        """Compare sums with the database, if that is due. A chore calls it.

        :raises Exception: the comparison failed; the next call tries again
        """
        is_empty = self._current is None and self._distrusted_since is None
        if not is_empty and self._clock() >= self._next_check:
            database.look(self._watch)

    def read_again(self, database: Database) -> None:
        """Read everything afresh, to find changes that no sum shows. A chore calls it.

        :raises Exception: the reading failed
        """
        if self.is_keeping:
            database.look(self._read_again)

    def _watch(self, connection: Connection) -> None:
        current = self._follow(connection, self._current)
        if current:
            self._check(connection, current)
        elif self._distrusted_since is not None:
            self._distrusted_since = self._clock()

    def _read_again(self, connection: Connection) -> None:
        current = self._follow(connection, self._current)
        if current is None:
            return
        fresh = read_all(connection, current.position)
        if are_same(current.forest, fresh.forest):
            # Processes share the memory of what was read before they forked.
            return
        self._replace(fresh)
        self._count("reading")
        LOG.warning(
            "the database was changed without a record of it, by another service or by "
            "hand: everything was read again"
        )

    def _follow(
        self, connection: Connection, base: Checkpoint | None
    ) -> Checkpoint | None:
        """Return the forest as the transaction sees it, and keep it.

        None means that changes are not recorded, and nothing is kept.

        :param base: the forest that was kept before the transaction read anything
        """
        if base is None:
            with self._loading:
                base = self._current
                if base is None:
                    current = self._read_all(connection)
                    self._replace(current)
                    self._next_check = self._clock() + CHECK_EVERY
                    return current
        current = None
        changes = change_log.load_changes(connection, base.position)
        if changes:
            current = follow(connection, base, *changes)
        else:
            self._complain(change_log.is_usable(connection))
        # Without the log, changes from now on are not recorded, and the forest would be
        # wrong later.
        with self._replacing:
            # Another transaction may have replaced it meanwhile.
            if current is None or (self._current is base and current is not base):
                self._keep(current)
        return current

    def _read_all(self, connection: Connection) -> Checkpoint | None:
        """Return the forest read afresh; None if changes are not recorded."""
        if not change_log.is_usable(connection):
            return None
        changes = change_log.load_changes(connection, change_log.NOWHERE)
        self._complain(changes is None)
        return read_all(connection, changes[0]) if changes else None

    def _complain(self, are_missing: bool) -> None:
        """Log once that rows are missing."""
        if are_missing and not self._has_complained:
            self._has_complained = True
            LOG.warning(
                "the table %s lacks rows, so nothing is kept between requests",
                models.FOREST_STAMPS.name,
            )

    def _replace(self, current: Checkpoint | None) -> None:
        """Keep a forest that was read afresh, or none."""
        with self._replacing:
            self._keep(current)

    def _keep(self, current: Checkpoint | None) -> None:
        self._current = current
        size = current.forest.size if current and self.is_keeping else 0
        telemetry.record(measure.FOREST_TREES, size)

    def _check(self, connection: Connection, current: Checkpoint) -> Checkpoint | None:
        """Return the forest; None if sums show a change that was not recorded."""
        compared = self._compared
        own = fingerprint.of_forest(current.forest, compared)
        before = self._clock()
        # Other threads leave the comparison to this one.
        self._next_check = before + LONGEST_CHECK
        stored = database_sum.load(connection)
        after = self._clock()
        self._next_check = after + max(CHECK_EVERY, REST * (after - before))
        difference = fingerprint.between(stored, own)
        if difference != compared.difference:
            fresh = read_all(connection, current.position)
            read = fingerprint.of_forest(fresh.forest)
            if read != own:
                difference = fingerprint.between(stored, read)
                self._compared = Comparison(fresh.forest, read, difference)
                self._distrust(fresh)
                return None
        self._compared = Comparison(current.forest, own, difference)
        if self._distrusted_since is not None:
            self._trust_if_quiet(connection, current, self._distrusted_since)
        return current

    def _distrust(self, fresh: Checkpoint) -> None:
        is_first = self._distrusted_since is None
        with self._replacing:
            self._distrusted_since = self._clock()
            self._keep(fresh)
        self._count("sums")
        if is_first:
            LOG.warning(
                "another service writes to this database, so nothing is kept between "
                "requests until it has not done so for %s seconds",
                QUIET,
            )

    def _trust_if_quiet(
        self, connection: Connection, current: Checkpoint, since: float
    ) -> None:
        if self._clock() - since < QUIET:
            return
        # Meanwhile there may have been changes that no sum shows.
        fresh = read_all(connection, current.position)
        with self._replacing:
            self._distrusted_since = None
            self._keep(fresh)
        LOG.info("no other service writes to this database: the forest is kept")

    def _count(self, found_by: str) -> None:
        """Count that changes were not recorded, and let the journal have a gap."""
        telemetry.record(measure.FOREST_CORRECTIONS, found_by=found_by)
        if self._journal:
            self._journal.miss()


def read_all(connection: Connection, position: LogPosition) -> Checkpoint:
    """Return the whole forest, read afresh.

    :param position: that of the transaction
    """
    telemetry.record(measure.FOREST_REFRESHES, extent="all")
    return Checkpoint(loading.load(connection), position)


def follow(
    connection: Connection, base: Checkpoint, position: LogPosition, changed: Changed
) -> Checkpoint:
    """Return a checkpoint with all trees and names as the transaction sees them.

    :param position: that of the transaction
    :param changed: what has changed from the base to there
    """
    if position is base.position:
        return base
    words = base.forest.vocabulary
    if changed.names:
        words = loading.load_vocabulary(connection)
    root_ids = _list_changed(connection, base.forest, changed.roots, changed.shards)
    if root_ids is None or _are_renamed(base.forest.vocabulary, words):
        return read_all(connection, position)
    telemetry.record(measure.FOREST_REFRESHES, extent="changes")
    trees = reading.load(connection, words, root_ids)
    return Checkpoint(base.forest.replace(words, root_ids, trees), position)


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
    return list(map(members_of, tree.members)) if tree else []

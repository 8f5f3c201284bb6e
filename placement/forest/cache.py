"""The forest that a process keeps between requests, brought up to date by each."""

import itertools
import threading
import time
from collections.abc import Callable

import sqlalchemy as sa
from oslo_log import log

from placement import measure
from placement.db import models
from placement.forest import kept, loading
from placement.forest.forest import Forest
from placement.forest.kept import Kept
from placement.forest.own_change import OwnChanges
from placement.forest.part import Part
from placement.objects import change_log, exact_match
from placement.objects.change_log import Nearby
from placement.objects.journal import keeping
from placement_foundation.database.storage import Database
from placement_foundation.observing import telemetry
from placement_foundation.serving import interpreter

LOG = log.getLogger(__name__)

# From when on a request checks for unrecorded changes: so many seconds after the last
# check, and so many times as long as that took.
LOOK_EVERY = 3
REST = 50
# For how long the trees that are not asked for may wait until they are followed, in
# seconds. It is much shorter than it takes to make a list of changes too long.
FOLLOW_EVERY = 1
# How often a thread does beside the requests what one of them would soon have to do,
# in seconds. That is when a check is due in so many seconds, or in as many as it
# takes.
WORK_EVERY = 0.5
AHEAD = 1
# From how many seconds on a check takes so long that the thread does not wait until
# there are requests.
LONG = 0.05
# For how long all changes must have been recorded before the forest is kept again, in
# seconds.
QUIET = 300
# How many trees are compared exactly at a time.
PART = 250

_root_id = models.ResourceProvider.root_provider_id
_ROOTS = (
    sa.select(_root_id.label("root_id"))
    .distinct()
    .where(_root_id >= sa.bindparam("first"))
    .order_by(_root_id)
    .limit(sa.bindparam("most"))
)


@telemetry.timed("load")
def load(
    connection: sa.Connection,
    cache: "ForestCache | None" = None,
    part: Part | None = None,
) -> Forest:
    """Return the forest as the transaction sees it: kept, or read afresh.

    Working with it needs no database, and should wait until the transaction has ended.

    :param part: what the forest is about, and all that one that is read afresh has;
        None means the whole cloud
    """
    current = cache.load_forest(connection, part) if cache else None
    return current or loading.load(connection, part)


def warm_up(database: Database, cache: "ForestCache") -> None:
    """Load the forest, if possible; otherwise the first request does it.

    Processes that fork afterwards share the memory.
    """
    try:
        with interpreter.without_collecting():
            database.read(cache.load)
    except Exception as exc:
        LOG.warning("the forest is not loaded before the first request: %s", exc)


class ForestCache:
    """Keeps the forest of one database.

    The forest is replaced as a whole, never changed, so threads may go on using the one
    they have. Each compares the kept forest with what its own transaction sees.

    Once the database has changed in a way that was not recorded, nothing is kept until
    that has not happened for ``QUIET`` seconds: there is no forest to trust, but one
    that is ``observed`` by ``examine``, in the background.

    :param clock: returns the time, in seconds
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.own_changes = OwnChanges()
        self._kept: Kept | None = None
        self._observed: Kept | None = None
        # When an unrecorded change was found; None if what is kept is trusted.
        self._distrusted_since: float | None = None
        self._has_complained = False
        self._next_look = clock() + LOOK_EVERY
        # How long a check takes, or at most.
        self._look_takes = 0.0
        self._next_follow = clock() + FOLLOW_EVERY
        # Whether there was a request since work was done beside requests.
        self._is_asked = False
        # From which id on the trees are to be examined.
        self._next_root = 0
        self._replacing = threading.Lock()
        self._loading = threading.Lock()

    @property
    def is_keeping(self) -> bool:
        """Whether there is a forest, and it is trusted."""
        return self._kept is not None

    def load(self, connection: sa.Connection) -> Kept | None:
        """Return what is kept, as the transaction sees it; None if nothing is."""
        self._is_asked = True
        # Taken before the transaction reads anything, so its snapshot is a later one.
        return self._load(connection, self._kept)

    def load_forest(
        self, connection: sa.Connection, part: Part | None
    ) -> Forest | None:
        """Return the forest that is kept; None if nothing is.

        It is as the transaction sees it, or if it is needed for the tree of one
        provider, at least that tree is. The generation of this provider is the one in
        the database, whoever changed it.

        :param part: what it is needed for; None means the whole cloud
        """
        self._is_asked = True
        base, only = self._kept, part.only if part else None
        if base is None or part is None or only is None:
            current = self._load(connection, base)
            return current.forest if current else None
        may_suffice = self._may_suffice(base, part)
        nearby = self._load_nearby(connection, *only)
        generation = nearby.generation if nearby else None
        is_same = generation == _generation(base, *only)
        if may_suffice and nearby and is_same and base.seen.has_same(nearby):
            return base.forest
        current = self._load(connection, base)
        if nearby and current and generation != _generation(current, *only):
            current = self._look(connection, current)
        return current.forest if current else None

    def _may_suffice(self, base: Kept, part: Part) -> bool:
        """Return whether it is enough if a part of what is kept is up to date.

        If not, there is more that the question is about, or more to do.
        """
        return self._clock() < min(
            self._next_follow, self._next_look
        ) and part.is_one_tree(base.forest.vocabulary)

    def _load(self, connection: sa.Connection, base: Kept | None) -> Kept | None:
        if self._distrusted_since is not None:
            return None
        current = self._bring(connection, base)
        if current and self._clock() >= self._next_look:
            return self._look(connection, current)
        return current

    def _bring(self, connection: sa.Connection, base: Kept | None) -> Kept | None:
        """Return what is kept, brought up to date, and keep that.

        :param base: what was kept before the transaction read anything
        """
        if base is None:
            with self._loading:
                base = self._kept
                if base is None:
                    before = self._clock()
                    base = self._read_all(connection)
                    self._replace(base)
                    # A comparison takes less.
                    after = self._clock()
                    self._look_takes = after - before
                    self._next_look = after + max(LOOK_EVERY, after - before)
        # Other threads need not do so at the same time.
        self._next_follow = self._clock() + FOLLOW_EVERY
        current = self._follow(connection, base) if base else None
        if base is None or current is None:
            # Changes from now on are not recorded, so it would be wrong later.
            self._replace(None)
            return None
        with self._replacing:
            # A thread whose transaction began earlier must not take it back in time;
            # if that did not, the database was restored.
            is_older = base.is_newer(connection) and base.seen.is_newer(
                base.seen.differing(current.seen)
            )
            if self._kept is base and not is_older:
                self._keep(current)
        return current

    def _bring_kept(self, connection: sa.Connection) -> Kept | None:
        """Return what is kept, brought up to date; None if nothing is."""
        base = self._kept
        return self._bring(connection, base) if base else None

    def _read_all(self, connection: sa.Connection) -> Kept | None:
        """Return the forest read afresh; None if changes are not recorded."""
        if not change_log.is_usable(connection):
            return None
        seen = change_log.load_seen(connection)
        self._complain(seen is None)
        return kept.read_all(connection, seen, compared=False) if seen else None

    def _follow(self, connection: sa.Connection, base: Kept) -> Kept | None:
        """Return a forest brought up to date; None if changes are not recorded."""
        if not change_log.is_usable(connection):
            return None
        changes = change_log.load_differing(connection, base.seen)
        self._complain(changes is None)
        if changes is None:
            return None
        return kept.follow(connection, base, changes, self.own_changes)

    def _load_nearby(
        self, connection: sa.Connection, key: str, value: str
    ) -> Nearby | None:
        """Return what the database has of a provider, if it can be known."""
        if not exact_match.is_searchable(value) or not change_log.is_usable(connection):
            return None
        return change_log.load_nearby(connection, key, value)

    def _complain(self, are_missing: bool) -> None:
        """Log once that rows are missing."""
        if are_missing and not self._has_complained:
            self._has_complained = True
            LOG.warning(
                "the table %s lacks rows, so nothing is kept between requests",
                models.FOREST_STAMPS.name,
            )

    def _keep(self, current: Kept | None) -> None:
        if self._distrusted_since is not None:
            # Another thread has found what this one's snapshot does not show.
            current = None
        self._kept = current
        size = current.forest.size if current else 0
        telemetry.record(measure.FOREST_TREES, size)

    def _replace(self, current: Kept | None) -> None:
        """Keep a forest that was read afresh, or none."""
        with self._replacing:
            self._keep(current)

    def _settle(self, checked: Kept) -> None:
        """Keep a forest that was checked, or the newer one that it has become."""
        with self._replacing:
            newer = self._kept
            if newer and newer.origin is checked.origin:
                checked = newer.compared(checked.difference)
            self._keep(checked)

    def _look(self, connection: sa.Connection, current: Kept) -> Kept | None:
        """Return the forest if it has all changes in the database, else None.

        If it lacks any, a program writes without recording its changes, and nothing is
        kept for a while.
        """
        before = self._clock()
        # Other threads need not check at the same time.
        self._next_look = before + LOOK_EVERY + 2 * self._look_takes
        checked = kept.check(connection, current)
        after = self._clock()
        self._look_takes = after - before
        # The first check does what later ones need not do again.
        rest = 1 if current.difference is None else REST
        self._next_look = after + max(LOOK_EVERY, rest * self._look_takes)
        if kept.are_alike(checked, current):
            if checked is not current:
                self._settle(checked)
            return checked
        self._distrust(checked)
        self._replace(None)
        _count(connection, "sums")
        LOG.warning(
            "another service writes to this database, so nothing is kept between "
            "requests until it has not done so for %s seconds",
            QUIET,
        )
        return None

    def _distrust(self, observed: Kept | None) -> None:
        self._observed = observed
        self._distrusted_since = self._clock()

    def examine(self, connection: sa.Connection) -> None:
        """Compare a part of the forest with the database, exactly.

        Each call continues where the last one ended. While nothing is kept, find out
        whether that can end instead.
        """
        if self._distrusted_since is not None:
            self._observe(connection, self._distrusted_since)
            return
        current = self._bring_kept(connection)
        if current is None:
            return
        root_ids, self._next_root = _list_part(connection, current, self._next_root)
        if not kept.is_exact(connection, current, root_ids):
            self._replace(kept.read_all(connection, current.seen))
            _count(connection, "reading")
            LOG.warning(
                "the database was changed without a record of it, by another service "
                "or by hand: everything was read again"
            )

    def work_ahead(self, database: Database) -> None:
        """Do what a request would soon have to do: follow changes, and look for others.

        As long as there are no requests, only a check that takes long is made.

        :raises Exception: it failed; the next call tries again
        """
        is_asked, self._is_asked = self._is_asked, False
        is_due = self._looks_soon() and self._look_takes >= LONG
        if self.is_keeping and (is_asked or is_due):
            try:
                database.look(self._work_ahead)
            except Exception:
                self._is_asked = True
                raise

    def _work_ahead(self, connection: sa.Connection) -> None:
        current = self._bring_kept(connection)
        # A request may have looked, and found something.
        if current and self._distrusted_since is None and self._looks_soon():
            self._look(connection, current)

    def _looks_soon(self) -> bool:
        ahead = max(AHEAD, self._look_takes)
        return self._clock() >= self._next_look - ahead

    def _observe(self, connection: sa.Connection, since: float) -> None:
        observed = self._observed
        current = self._follow(connection, observed) if observed else None
        if current is None:
            self._distrust(self._read_all(connection))
            return
        checked = kept.check(connection, current)
        if not kept.are_alike(checked, current):
            self._distrust(checked)
            _count(connection, "sums")
            return
        self._observed = checked
        if self._clock() - since >= QUIET:
            with self._replacing:
                if self._distrusted_since != since:
                    # Another thread has found something meanwhile.
                    return
                self._observed = self._distrusted_since = None
                self._keep(checked)
            LOG.info("no other service writes to this database: the forest is kept")


def _generation(current: Kept, key: str, value: str) -> int | None:
    """Return the generation of a provider, by its UUID or name; None if there is none.

    :param key: ``uuid`` or ``name``
    """
    grown = current.forest
    find = grown.provider if key == "uuid" else grown.provider_named
    provider = find(value)
    return provider.generation if provider else None


def _count(connection: sa.Connection, found_by: str) -> None:
    """Count that changes were not recorded, which the journal lacks as well."""
    telemetry.record(measure.FOREST_CORRECTIONS, found_by=found_by)
    keeping.miss(connection)


def _list_part(
    connection: sa.Connection, current: Kept, first: int
) -> tuple[list[int], int]:
    """Return roots from an id on, those in the database and those in the forest.

    Also return the id to continue with, which is 0 after the last ones.
    """
    parameters = {"first": first, "most": PART}
    stored: list[int] = [row.root_id for row in connection.execute(_ROOTS, parameters)]
    known = list(itertools.islice(current.forest.roots_from(first), PART))
    ends = [ids[-1] for ids in (stored, known) if len(ids) == PART]
    if not ends:
        return sorted({*stored, *known}), 0
    end = min(ends)
    return sorted(each for each in {*stored, *known} if each <= end), end + 1

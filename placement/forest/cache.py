"""The forest that a process keeps between requests, brought up to date by each."""

import threading
import time
from collections.abc import Callable

import sqlalchemy as sa
from oslo_log import log

from placement import measure
from placement.db import models
from placement.forest import fingerprint, forest, prefilter, reading, vocabulary
from placement.forest.fingerprint import Fingerprint
from placement.forest.forest import Forest
from placement.forest.vocabulary import Vocabulary
from placement.model.request import Request
from placement.objects import change_log
from placement.objects.change_log import Seen
from placement.objects.journal import keeping
from placement.questions import name
from placement_foundation.database.storage import Database
from placement_foundation.observing import telemetry

LOG = log.getLogger(__name__)

# How often a process checks for unrecorded changes, in seconds; and the least pause
# between two checks, as a multiple of the time that a check takes.
LOOK_EVERY = 3
REST = 50


class Kept:
    """A forest, with the lists of changes that it has seen and their newest tokens.

    ``difference`` is by how much the fingerprint of the database exceeds the forest's.
    ``origin`` is the same for all that come from one reading of the whole database:
    what was derived from another one may lack changes that were not recorded.
    """

    __slots__ = ("difference", "forest", "heads", "origin", "seen")

    def __init__(
        self,
        grown: Forest,
        heads: str,
        seen: Seen,
        difference: Fingerprint,
        origin: object,
    ) -> None:
        self.forest = grown
        self.heads = heads
        self.seen = seen
        self.difference = difference
        self.origin = origin


@telemetry.timed("load")
def load(
    connection: sa.Connection,
    cache: "ForestCache | None" = None,
    request: Request | None = None,
) -> Forest:
    """Return the forest as the transaction sees it: kept, or read afresh.

    Working with it needs no database, and should wait until the transaction has ended.

    :param request: the request to search for; trees that cannot matter to it may be
        missing
    """
    kept = cache.load(connection) if cache else None
    return kept.forest if kept else _read(connection, request)


def warm_up(database: Database, cache: "ForestCache") -> None:
    """Load the forest, if possible; otherwise the first request does it.

    Processes that fork afterwards share the memory.
    """
    try:
        database.read(cache.load)
    except Exception as exc:
        LOG.warning("the forest is not loaded before the first request: %s", exc)


def _read(connection: sa.Connection, request: Request | None) -> Forest:
    """Return a forest of what can matter to a request, without keeping it."""
    words = vocabulary.load(connection)
    roots = None
    if request and name.are_known(request, words):
        roots = prefilter.list_relevant(connection, request, words).roots
    return forest.forest_of(words, reading.load(connection, words, roots))


class ForestCache:
    """Keeps the forest of one database.

    The forest is replaced as a whole, never changed, so threads may go on using the one
    they have. Each compares the kept forest with what its own transaction sees.

    :param clock: tells the time, in seconds
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: Kept | None = None
        self._has_complained = False
        self._is_off = False
        self._next_look = clock() + LOOK_EVERY
        self._replacing = threading.Lock()
        self._loading = threading.Lock()

    @property
    def is_keeping(self) -> bool:
        """Whether there is a forest, and it is trusted."""
        return self._kept is not None

    def load(self, connection: sa.Connection) -> Kept | None:
        """Return what is kept, as the transaction sees it; None if nothing is."""
        if self._is_off:
            return None
        # Taken before the transaction reads anything, so its snapshot is a later one.
        base = self._kept
        heads = self._load_heads(connection)
        if heads is None:
            # Changes from now on are not recorded, so it would be wrong later.
            self._forget()
            return None
        if base is None:
            with self._loading:
                base = self._kept or self._publish(
                    None, self._load_all(connection, heads)
                )
        if base.heads == heads:
            current = base
        else:
            current = self._publish(base, self._catch_up(connection, base, heads))
        must_look = self._clock() >= self._next_look
        if must_look and not self._is_complete(connection, current):
            return None
        return current

    def _forget(self) -> None:
        self._kept = None
        telemetry.tell(measure.FOREST_TREES, 0)

    def _load_heads(self, connection: sa.Connection) -> str | None:
        """Return the newest tokens of changes; None if changes are not recorded."""
        if not change_log.is_usable(connection):
            return None
        heads = change_log.load_heads(connection)
        if heads is None and not self._has_complained:
            self._has_complained = True
            LOG.warning(
                "the table %s lacks rows, so nothing is kept between requests",
                models.FOREST_STAMPS.name,
            )
        return heads

    def _publish(self, base: Kept | None, fresh: Kept) -> Kept:
        """Keep a new forest, unless there is a newer one; return it in any case."""
        with self._replacing:
            if self._kept is base and not (base and fresh.seen.is_older(base.seen)):
                self._kept = fresh
                telemetry.tell(measure.FOREST_TREES, fresh.forest.size)
        return fresh

    def _load_all(self, connection: sa.Connection, heads: str) -> Kept:
        telemetry.tell(measure.FOREST_REFRESHES, extent="all")
        seen = change_log.seen_of(change_log.load_changes(connection))
        words = vocabulary.load(connection)
        grown = forest.forest_of(words, reading.load(connection, words))
        difference = fingerprint.between(
            fingerprint.load(connection), fingerprint.of_forest(grown)
        )
        return Kept(grown, heads, seen, difference, object())

    def _catch_up(self, connection: sa.Connection, base: Kept, heads: str) -> Kept:
        """Return the kept forest, with everything that differs read again."""
        shards = base.seen.differing(heads.split(","))
        seen = base.seen.replace(change_log.load_changes(connection, shards))
        words = base.forest.vocabulary
        if change_log.NAMES in shards:
            words = vocabulary.load(connection)
        changed = base.seen.changed_roots(seen, reading.MOST_LISTED_ROOTS)
        if changed is None or _are_renamed(base.forest.vocabulary, words):
            return self._load_all(connection, heads)
        telemetry.tell(measure.FOREST_REFRESHES, extent="changes")
        trees = reading.load(connection, words, changed, base.forest.provider)
        return Kept(
            base.forest.replace(words, changed, trees),
            heads,
            seen,
            base.difference,
            base.origin,
        )

    def _is_complete(self, connection: sa.Connection, current: Kept) -> bool:
        """Return whether the forest has all changes in the database.

        If not, some program writes without recording its changes, and nothing is kept
        any more.
        """
        before = self._clock()
        # Other threads need not check at the same time.
        self._next_look = before + LOOK_EVERY
        difference = fingerprint.between(
            fingerprint.load(connection), fingerprint.of_forest(current.forest)
        )
        after = self._clock()
        self._next_look = after + max(LOOK_EVERY, REST * (after - before))
        if difference == current.difference:
            return True
        self._is_off = True
        self._forget()
        keeping.miss(connection)
        LOG.warning(
            "another service writes to this database, so nothing is kept between "
            "requests until this process is started again"
        )
        return False


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

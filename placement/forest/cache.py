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
from placement.forest.part import Part
from placement.objects import change_log, exact_match
from placement.objects.journal import keeping
from placement_foundation.database.storage import Database
from placement_foundation.observing import telemetry

LOG = log.getLogger(__name__)

# How often a process checks for unrecorded changes, in seconds; and the least pause
# between two checks, as a multiple of the time that a check takes.
LOOK_EVERY = 3
REST = 50
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
    current = cache.load(connection, part) if cache else None
    return current.forest if current else loading.load(connection, part)


def warm_up(database: Database, cache: "ForestCache") -> None:
    """Load the forest, if possible; otherwise the first request does it.

    Processes that fork afterwards share the memory.
    """
    try:
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
        self._kept: Kept | None = None
        self._observed: Kept | None = None
        # When an unrecorded change was found; None if what is kept is trusted.
        self._distrusted_since: float | None = None
        self._has_complained = False
        self._next_look = clock() + LOOK_EVERY
        # From which id on the trees are to be examined.
        self._next_root = 0
        self._replacing = threading.Lock()
        self._loading = threading.Lock()

    @property
    def is_keeping(self) -> bool:
        """Whether there is a forest, and it is trusted."""
        return self._kept is not None

    def load(self, connection: sa.Connection, part: Part | None = None) -> Kept | None:
        """Return what is kept, as the transaction sees it; None if nothing is.

        :param part: what it is needed for. If that is one provider, its generation is
            the one in the database, whoever changed it
        """
        if self._distrusted_since is not None:
            return None
        # Taken before the transaction reads anything, so its snapshot is a later one.
        base = self._kept
        uuid = part.only_uuid if part else None
        if uuid is None or not exact_match.is_searchable(uuid):
            current = self._bring(connection, base, self._load_heads(connection))
            is_wrong = False
        else:
            heads, generation = self._load_heads_with(connection, uuid)
            current = self._bring(connection, base, heads)
            is_wrong = current is not None and generation != _generation(current, uuid)
        if current and (is_wrong or self._clock() >= self._next_look):
            return self._look(connection, current)
        return current

    def _load_current(self, connection: sa.Connection) -> Kept | None:
        base = self._kept
        return self._bring(connection, base, self._load_heads(connection))

    def _bring(
        self, connection: sa.Connection, base: Kept | None, heads: str | None
    ) -> Kept | None:
        """Return what is kept, brought up to date, and keep that.

        :param base: what was kept before the transaction read anything
        """
        if heads is None:
            # Changes from now on are not recorded, so it would be wrong later.
            self._replace(None)
            return None
        if base is None:
            with self._loading:
                base = self._kept
                if base is None:
                    base = kept.read_all(connection, heads)
                    self._replace(base)
        current = kept.follow(connection, base, heads)
        with self._replacing:
            # A thread whose transaction began earlier must not take it back in time;
            # if that did not, the database was restored.
            is_older = base.is_newer(connection) and current.seen.is_older(base.seen)
            if self._kept is base and not is_older:
                self._keep(current)
        return current

    def _keep(self, current: Kept | None) -> None:
        self._kept = current
        size = current.forest.size if current else 0
        telemetry.record(measure.FOREST_TREES, size)

    def _replace(self, current: Kept | None) -> None:
        """Keep a forest that was read afresh, or none."""
        with self._replacing:
            self._keep(current)

    def _load_heads(self, connection: sa.Connection) -> str | None:
        """Return the newest tokens of changes; None if changes are not recorded."""
        if not change_log.is_usable(connection):
            return None
        return self._checked(change_log.load_heads(connection))

    def _load_heads_with(
        self, connection: sa.Connection, uuid: str
    ) -> tuple[str | None, int | None]:
        """Return the newest tokens, and the generation of a provider."""
        if not change_log.is_usable(connection):
            return None, None
        heads, generation = change_log.load_heads_with(connection, uuid)
        return self._checked(heads), generation

    def _checked(self, heads: str | None) -> str | None:
        if heads is None and not self._has_complained:
            self._has_complained = True
            LOG.warning(
                "the table %s lacks rows, so nothing is kept between requests",
                models.FOREST_STAMPS.name,
            )
        return heads

    def _look(self, connection: sa.Connection, current: Kept) -> Kept | None:
        """Return the forest if it has all changes in the database, else None.

        If it lacks any, a program writes without recording its changes, and nothing is
        kept for a while.
        """
        before = self._clock()
        # Other threads need not check at the same time.
        self._next_look = before + LOOK_EVERY
        checked = kept.check(connection, current)
        after = self._clock()
        self._next_look = after + max(LOOK_EVERY, REST * (after - before))
        if kept.are_alike(checked, current):
            if checked is not current:
                self._replace(checked)
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
        current = self._load_current(connection) if self._kept else None
        if current is None:
            return
        root_ids, self._next_root = _list_part(connection, current, self._next_root)
        if not kept.is_exact(connection, current, root_ids):
            self._replace(kept.read_all(connection, current.heads))
            _count(connection, "reading")
            LOG.warning(
                "the database was changed without a record of it, by another service "
                "or by hand: everything was read again"
            )

    def _observe(self, connection: sa.Connection, since: float) -> None:
        heads, observed = self._load_heads(connection), self._observed
        if heads is None or observed is None:
            self._distrust(kept.read_all(connection, heads) if heads else None)
            return
        current = kept.follow(connection, observed, heads)
        checked = kept.check(connection, current)
        if not kept.are_alike(checked, current):
            self._distrust(checked)
            _count(connection, "sums")
            return
        self._observed = checked
        if self._clock() - since >= QUIET:
            self._replace(checked)
            self._observed = self._distrusted_since = None
            LOG.info("no other service writes to this database: the forest is kept")


def _generation(current: Kept, uuid: str) -> int | None:
    provider = current.forest.provider(uuid)
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

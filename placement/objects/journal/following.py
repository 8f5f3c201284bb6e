"""The feed: the entries after a cursor, now or as soon as there is one."""

import time
from collections.abc import Callable

import sqlalchemy as sa

from placement import errors
from placement.model.journal import NOW, Cursor, EntryPage, Since
from placement.model.journal_filter import EntryFilters
from placement.objects.journal import filing, reading
from placement.objects.journal.filing import FilingState
from placement.objects.journal.keeping import Keeper
from placement.objects.journal.reading import CursorAheadError
from placement_foundation.database.storage import Database

# How long a node of a cluster may lag behind the node that issued a cursor, in seconds.
LAG = 2.0
# The pause before a node of a cluster is queried again, in seconds.
PAUSE = 0.2
# The pause before a waiting request reads again, in seconds.
LOOK_EVERY = 0.5


def follow(
    keeper: Keeper,
    since: Since,
    filters: EntryFilters,
    limit: int,
    wait: float,
    must_end: Callable[[], bool],
) -> EntryPage:
    """Return the entries since a place that pass filters, the oldest first.

    A wait keeps no transaction open, and no connection in use.

    :param wait: how long to wait for an entry if there is none, in seconds
    :param must_end: returns whether to wait no longer
    :raises CursorGone: the journal lacks entries since the cursor
    """
    deadline = time.monotonic() + wait
    page = _read(keeper.database, since, filters, limit)
    if page.entries or not wait:
        return page
    with keeper.waiting_place() as may_wait:
        while may_wait and not (page.entries or must_end()):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            if not page.more:
                time.sleep(min(LOOK_EVERY, left))
            page = _read(keeper.database, page.cursor, filters, limit)
    return page


def _read(
    database: Database, since: Since, filters: EntryFilters, limit: int
) -> EntryPage:
    """File new entries, and return a page."""

    def read(connection: sa.Connection, state: FilingState) -> EntryPage:
        if since == NOW:
            cursor = reading.newest(state)
            return EntryPage([], cursor, more=False, begins=state.begins)
        if isinstance(since, Cursor):
            reading.check_cursor(connection, state, since)
        cursor = since if isinstance(since, Cursor) else reading.oldest(state)
        return reading.list_after(connection, state, cursor, filters, limit)

    deadline = time.monotonic() + LAG
    while True:
        try:
            return filing.read(database, read)
        except CursorAheadError as exc:
            if time.monotonic() > deadline:
                raise errors.CursorGone(
                    "This cursor is ahead of the journal: the database was restored "
                    f"since it was given. {reading.READ_FLEET}"
                ) from exc
        time.sleep(PAUSE)

"""Reading filed entries: cursors, and pages of the feed and of history."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.model.journal import Cursor, Document, EntryPage, token_of
from placement.model.journal_filter import EntryFilters
from placement.objects import own_table
from placement.objects.journal import filed_entry, filing
from placement.objects.journal.filing import FilingState
from placement.objects.journal.keeping import Keeper
from placement_foundation.database.storage import Database

# How many entries are read for one page at most, if filters leave out many of them.
MOST_SCANNED = 20_000
LEAST_BATCH = 1_000

_entry = models.JOURNAL_ENTRIES.c
_mention = models.JOURNAL_MENTIONS.c
_BY_MENTION = filed_entry.ENTRIES.join_from(
    models.JOURNAL_MENTIONS,
    models.JOURNAL_ENTRIES,
    _mention.position == _entry.position,
)
READ_FLEET = (
    "Read the fleet anew, with GET /ledger/v1/fleet, and go on from the cursor that "
    "comes with it."
)
OFF = (
    "The journal is switched off ([ledger] keep_journal_days = 0): nothing is recorded."
)


class CursorAheadError(Exception):
    """A cursor is ahead of this node of the database, which may lag behind."""


def check_is_kept(keeper: Keeper | None) -> Keeper:
    """Return the keeper of the journal.

    :raises NotFound: there is no journal
    """
    if keeper is None:
        raise errors.NotFound(OFF)
    return keeper


def check_is_readable(connection: sa.Connection) -> None:
    """Check that the tables of the journal can be used.

    :raises NotFound: a table is missing
    :raises DatabaseUnavailable: the database user has too few rights
    """
    for table in filing.TABLES:
        fault = own_table.find_fault(connection, table)
        if fault is own_table.Fault.MISSING:
            raise errors.NotFound(fault.of(table))
        if fault:
            raise errors.DatabaseUnavailable(fault.of(table))


def newest(state: FilingState) -> Cursor:
    """Return the place after all filed entries."""
    return Cursor(state.life, state.position, state.token)


def oldest(state: FilingState) -> Cursor:
    """Return the place before all kept entries."""
    return Cursor(state.life, state.expired, state.expired_token)


def load_cursor(
    connection: sa.Connection, keeper: Keeper | None
) -> tuple[Cursor | None, str | None]:
    """Return a place before all changes that the transaction does not see yet.

    The second part stands for all changes that it does see, and is None if some were
    not recorded. Both are None if no changes are recorded.
    """
    if keeper is None or not filing.is_usable(connection):
        return None, None
    state = filing.load_state(connection)
    if not state.life:
        return None, None
    cursor, mark = newest(state), filing.mark_waiting(connection)
    return cursor, None if keeper.has_missed else f"{cursor} {mark}"


def check_cursor(connection: sa.Connection, state: FilingState, cursor: Cursor) -> None:
    """Check that the journal has all entries after a cursor.

    :raises CursorGone: entries are missing
    :raises CursorAheadError: the journal has not reached the cursor yet
    """
    if cursor.life != state.life:
        raise errors.CursorGone(f"This cursor is of another journal. {READ_FLEET}")
    if cursor.position < state.expired:
        raise errors.CursorGone(
            f"What came after this cursor is no longer kept. {READ_FLEET}"
        )
    if cursor.position > state.position:
        raise CursorAheadError
    ends = {cursor.position + 1, state.position}
    stored = _load_tokens(connection, {cursor.position, *ends})
    if cursor.token != _token_at(state, cursor.position, stored):
        raise errors.CursorGone(
            f"The database was restored since this cursor was given. {READ_FLEET}"
        )
    # Positions have no gaps: the entry after the cursor and the last one must be there.
    if cursor.position < state.position and not ends <= stored.keys():
        raise errors.CursorGone(f"The journal was emptied. {READ_FLEET}")


def _load_tokens(
    connection: sa.Connection, positions: Collection[int]
) -> dict[int, str]:
    """Return the tokens of the entries at positions, as far as these are there."""
    ids = sa.select(_entry.position, _entry.id).where(_entry.position.in_(positions))
    return {place: token_of(uuid) for place, uuid in connection.execute(ids)}


def _token_at(
    state: FilingState, position: int, stored: Mapping[int, str]
) -> str | None:
    ends = {state.expired: state.expired_token, state.position: state.token}
    return {**stored, **ends}.get(position)


def list_after(
    connection: sa.Connection,
    state: FilingState,
    cursor: Cursor,
    filters: EntryFilters,
    limit: int,
) -> EntryPage:
    """Return the entries after a place, the oldest first."""
    following = _look_through(
        connection, state, filters, cursor.position, limit + 1, newest_first=False
    )
    return _collect(state, following, filters, limit, end=newest(state))


def list_history(
    database: Database, marker: Cursor | None, filters: EntryFilters, limit: int
) -> EntryPage:
    """Return the entries before a marker, the newest first; None means the end.

    The cursor of the page is the marker for the next page.

    :raises CursorGone: the marker is of a journal that was restored or emptied
    """

    def read(connection: sa.Connection, state: FilingState) -> EntryPage:
        if marker:
            _check_marker(connection, state, marker)
        start = marker.position if marker else state.position + 1
        earlier = _look_through(
            connection, state, filters, start, limit + 1, newest_first=True
        )
        return _collect(state, earlier, filters, limit, end=oldest(state))

    return filing.read(database, read)


def _check_marker(
    connection: sa.Connection, state: FilingState, marker: Cursor
) -> None:
    """Check that history can go on from a marker.

    The entry of a marker may be removed since, which does no harm, and a node of a
    cluster may lack it for now.

    :raises CursorGone: the marker is of a journal that was restored or emptied
    """
    if marker.life != state.life:
        raise errors.CursorGone("This marker is of another journal. Begin anew.")
    if not state.expired < marker.position <= state.position:
        return
    stored = _load_tokens(connection, {marker.position})
    if marker.token != _token_at(state, marker.position, stored):
        raise errors.CursorGone(
            "The database was restored since this marker was given. Begin anew."
        )


def look_back(
    connection: sa.Connection, state: FilingState, filters: EntryFilters
) -> Iterator[Document]:
    """Yield all entries that pass filters, the newest first, while they are read."""
    start = state.position + 1
    for _, document in _look_through(
        connection, state, filters, start, LEAST_BATCH, newest_first=True
    ):
        if filters.accepts(document):
            yield document


def _collect(
    state: FilingState,
    looked_at: Iterable[tuple[int, Document]],
    filters: EntryFilters,
    limit: int,
    end: Cursor,
) -> EntryPage:
    """Return a page of those entries that pass the filters.

    :param end: the cursor of the last page
    """
    entries: list[Document] = []
    cursor = end
    for number, (position, document) in enumerate(looked_at):
        if len(entries) == limit or number == MOST_SCANNED:
            return EntryPage(entries, cursor, more=True, begins=state.begins)
        cursor = Cursor(state.life, position, token_of(document["id"]))
        if filters.accepts(document):
            entries.append({**document, "cursor": str(cursor)})
    return EntryPage(entries, end, more=False, begins=state.begins)


def _look_through(
    connection: sa.Connection,
    state: FilingState,
    filters: EntryFilters,
    start: int,
    size: int,
    *,
    newest_first: bool,
) -> Iterator[tuple[int, Document]]:
    """Yield entries on one side of a position that may pass, while they are read.

    :param size: how many entries to read at a time, unless many of them may not pass
    """
    if not filters.is_lax:
        size = max(size, LEAST_BATCH)
    while True:
        query = _query(state, filters, start, size, newest_first=newest_first)
        # An entry may be found in several ways.
        rows = {row.position: row for row in connection.execute(query)}
        positions = sorted(rows, reverse=newest_first)[:size]
        for position in positions:
            yield position, filed_entry.parse(rows[position])
        if len(positions) < size:
            return
        start = positions[-1]


def _query(
    state: FilingState,
    filters: EntryFilters,
    start: int,
    size: int,
    *,
    newest_first: bool,
) -> sa.Select[Any] | sa.CompoundSelect[Any]:
    """Return the query for entries on one side of a position, along indexes."""

    def along(query: sa.Select[Any], position: sa.Column[int]) -> sa.Select[Any]:
        if newest_first:
            query = query.where(position < start).order_by(position.desc())
        else:
            query = query.where(position > start).order_by(position)
        if filters.since is not None:
            query = query.where(_entry.time >= filters.since)
        if filters.until is not None:
            query = query.where(_entry.time <= filters.until)
        return query.where(position > state.expired).limit(size)

    mention, members = filters.mention
    if mention is None:
        return along(filed_entry.ENTRIES, _entry.position)
    # Entries with the mention may pass, and gaps.
    key = filed_entry.key_of(mention)
    ways = [
        along(filed_entry.ENTRIES.where(_entry[member] == key), _entry.position)
        for member in members
    ]
    ways += [
        along(_BY_MENTION.where(_mention.mentioned == each), _mention.position)
        for each in (key, filed_entry.GAPS)
    ]
    return sa.union_all(*(sa.select(way.subquery()) for way in ways))

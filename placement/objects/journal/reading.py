"""Reading what is filed: cursors, and pages of the feed and of history."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.model.journal import Cursor, EntryPage
from placement.model.journal_filter import EntryFilters
from placement.objects import own_table
from placement.objects.journal import filing, packing
from placement.objects.journal.filing import Filed, FilingState
from placement.objects.journal.keeping import Keeper
from placement_foundation.database.storage import Database

# How many entries are looked at for one page that leaves out many of them.
MOST_SCANNED = 20_000
LEAST_BATCH = 1_000

_entry = models.JOURNAL_ENTRIES.c
_word = models.JOURNAL_WORDS.c
_ENTRIES = sa.select(_entry.position, _entry.entry)
_BY_WORD = _ENTRIES.join_from(
    models.JOURNAL_WORDS,
    models.JOURNAL_ENTRIES,
    _word.position == _entry.position,
)
_AMONG = _ENTRIES.where(_entry.position.in_(sa.bindparam("positions", expanding=True)))
READ_FLEET = (
    "Read the fleet anew, with GET /ledger/v1/fleet, and go on from the cursor that "
    "comes with it."
)
OFF = (
    "The journal is switched off ([ledger] keep_journal_days = 0): nothing is recorded."
)


class CursorAheadError(Exception):
    """A cursor is ahead of what this node of the database knows, perhaps not yet."""


def check_is_kept(keeper: Keeper | None) -> Keeper:
    """Return the keeper of the journal.

    :raises NotFound: there is no journal
    """
    if keeper is None:
        raise errors.NotFound(OFF)
    return keeper


def check_is_readable(connection: sa.Connection) -> None:
    """Check that the tables of the journal can be used.

    :raises NotFound: one of them is missing
    :raises DatabaseUnavailable: the database user has too few rights
    """
    for table in filing.TABLES:
        fault = own_table.find_fault(connection, table)
        if fault is own_table.Fault.MISSING:
            raise errors.NotFound(f"The table {table.name} {fault.value}.")
        if fault:
            raise errors.DatabaseUnavailable(f"The table {table.name} {fault.value}.")


def newest(state: FilingState) -> Cursor:
    """Return the place after everything that is filed."""
    return Cursor(state.life, state.position, state.token)


def oldest(state: FilingState) -> Cursor:
    """Return the place before everything that is kept."""
    return Cursor(state.life, state.expired, state.expired_token)


def load_cursor(
    connection: sa.Connection, keeper: Keeper | None
) -> tuple[Cursor | None, str | None]:
    """Return a place before everything that the transaction does not see yet.

    The second part stands for everything that it does see, and is None if there are
    changes that were not recorded. Both are None if nothing is recorded.
    """
    if keeper is None or not filing.is_usable(connection):
        return None, None
    cursor = newest(filing.load_state(connection))
    mark = filing.mark_waiting(connection)
    return cursor, None if keeper.has_missed else f"{cursor} {mark}"


def check_cursor(connection: sa.Connection, state: FilingState, cursor: Cursor) -> None:
    """Check that everything after a cursor is in the journal.

    :raises CursorGone: it is not
    :raises CursorAheadError: there is no such place yet
    """
    if cursor.life != state.life:
        raise errors.CursorGone(f"This cursor is of another journal. {READ_FLEET}")
    if cursor.position < state.expired:
        raise errors.CursorGone(
            f"What came after this cursor is no longer kept. {READ_FLEET}"
        )
    if cursor.position > state.position:
        raise CursorAheadError
    # Positions have no gaps: what the page begins with, and the last entry, are there.
    ends = {cursor.position + 1, state.position}
    found: dict[int, bytes] = {}
    if cursor.position < state.position:
        positions = sorted({cursor.position, *ends})
        rows = connection.execute(_AMONG, {"positions": positions})
        found = {row.position: row.entry for row in rows}
    if cursor.token != _token_at(state, cursor.position, found):
        raise errors.CursorGone(
            f"The database was restored since this cursor was given. {READ_FLEET}"
        )
    if cursor.position < state.position and not ends <= found.keys():
        raise errors.CursorGone(f"The journal was emptied. {READ_FLEET}")


def _token_at(
    state: FilingState, position: int, found: Mapping[int, bytes]
) -> str | None:
    if position == state.position:
        return state.token
    if position == state.expired:
        return state.expired_token
    packed = found.get(position)
    return packing.token_of(packing.unpack(packed)) if packed else None


def list_after(
    connection: sa.Connection,
    state: FilingState,
    cursor: Cursor,
    filters: EntryFilters,
    limit: int,
) -> EntryPage:
    """Return the entries after a place, the oldest first."""
    scan = _Scan(connection, state, filters, newest_first=False)
    entries, last = scan.collect(cursor.position, limit)
    if last is None:
        return EntryPage(entries, newest(state), more=False, begins=state.begins)
    return EntryPage(entries, _after(state, last), more=True, begins=state.begins)


def list_history(
    database: Database, marker: Cursor | None, filters: EntryFilters, limit: int
) -> EntryPage:
    """Return the entries before a marker, the newest first; None means the end.

    The cursor of the page is the marker with which to go on.

    :raises CursorGone: the marker is of a journal that was restored or emptied
    """

    def read(connection: sa.Connection, state: FilingState) -> EntryPage:
        return _list_before(connection, state, marker, filters, limit)

    return filing.read(database, read)


def _list_before(
    connection: sa.Connection,
    state: FilingState,
    marker: Cursor | None,
    filters: EntryFilters,
    limit: int,
) -> EntryPage:
    if marker:
        _check_marker(connection, state, marker)
    scan = _Scan(connection, state, filters, newest_first=True)
    start = marker.position if marker else state.position + 1
    entries, last = scan.collect(start, limit)
    if last is None:
        return EntryPage(entries, oldest(state), more=False, begins=state.begins)
    return EntryPage(entries, _after(state, last), more=True, begins=state.begins)


def _check_marker(
    connection: sa.Connection, state: FilingState, marker: Cursor
) -> None:
    """Check that history can go on from a marker.

    What has been removed since it was given is not missed, and a node of a cluster may
    not know its entry yet.

    :raises CursorGone: the marker is of a journal that was restored or emptied
    """
    if marker.life != state.life:
        raise errors.CursorGone("This marker is of another journal. Begin anew.")
    if not state.expired < marker.position <= state.position:
        return
    rows = connection.execute(_AMONG, {"positions": [marker.position]})
    found = {row.position: row.entry for row in rows}
    if marker.token != _token_at(state, marker.position, found):
        raise errors.CursorGone(
            "The database was restored since this marker was given. Begin anew."
        )


def look_back(
    connection: sa.Connection, state: FilingState, filters: EntryFilters
) -> Iterator[packing.Document]:
    """Yield all entries that pass filters, the newest first, while they are read."""
    scan = _Scan(connection, state, filters, newest_first=True)
    for filed in scan.look_through(state.position + 1, LEAST_BATCH):
        if filters.accepts(filed.document):
            yield filed.document


def _after(state: FilingState, filed: Filed) -> Cursor:
    return Cursor(state.life, filed.position, packing.token_of(filed.document))


class _Scan:
    """Looks through the journal in one direction."""

    def __init__(
        self,
        connection: sa.Connection,
        state: FilingState,
        filters: EntryFilters,
        *,
        newest_first: bool,
    ) -> None:
        self._connection = connection
        self._state = state
        self._filters = filters
        self._newest_first = newest_first

    def collect(
        self, start: int, limit: int
    ) -> tuple[list[packing.Document], Filed | None]:
        """Return entries after, or before, a position.

        With them comes the last one that was looked at, None if there is no more.
        """
        entries: list[packing.Document] = []
        last: Filed | None = None
        for number, filed in enumerate(self.look_through(start, limit + 1)):
            if len(entries) == limit or number == MOST_SCANNED:
                return entries, last
            if self._filters.accepts(filed.document):
                token = packing.token_of(filed.document)
                cursor = f"{self._state.life}.{filed.position}.{token}"
                entries.append({**filed.document, "cursor": cursor})
            last = filed
        return entries, None

    def look_through(self, start: int, size: int) -> Iterator[Filed]:
        """Yield what may pass, reading as much at a time as a page needs."""
        if not self._filters.is_lax:
            size = max(size, LEAST_BATCH)
        while True:
            batch = self._read(start, size)
            yield from batch
            if len(batch) < size:
                return
            start = batch[-1].position

    def _read(self, start: int, size: int) -> list[Filed]:
        """Return what may pass, in order, at most so many entries."""
        filters = self._filters
        kind = _Kind(
            has_word=filters.word is not None,
            newest_first=self._newest_first,
            has_since=filters.since is not None,
            has_until=filters.until is not None,
        )
        parameters = {
            "start": start,
            "expired": self._state.expired,
            "size": size,
            "since": filters.since,
            "until": filters.until,
        }
        if filters.word is not None:
            parameters["word"] = packing.hash_of(filters.word)
        rows = self._connection.execute(_query(kind), parameters)
        # An entry may mention both the word and a gap.
        packed: dict[int, bytes] = {row.position: row.entry for row in rows}
        ordered = sorted(packed, reverse=self._newest_first)[:size]
        return [Filed(each, packing.unpack(packed[each])) for each in ordered]


class _Kind(NamedTuple):
    """What a query for entries looks at."""

    has_word: bool
    newest_first: bool
    has_since: bool
    has_until: bool


@functools.cache
def _query(kind: _Kind) -> sa.Select[Any] | sa.CompoundSelect[Any]:
    """Return the query for some entries on one side of a position.

    With a word, these are the entries that mention it, and gaps: the database walks
    along an index for either.
    """
    if not kind.has_word:
        return _limited(_ENTRIES, _entry.position, kind)
    words = (
        sa.bindparam("word", type_=sa.BigInteger),
        sa.literal(packing.hash_of(packing.GAP_WORD), sa.BigInteger),
    )
    parts = [
        _limited(_BY_WORD.where(_word.word == each), _word.position, kind).subquery()
        for each in words
    ]
    return sa.union_all(*(sa.select(*part.c) for part in parts))


def _limited(
    query: sa.Select[Any], position: sa.ColumnElement[int], kind: _Kind
) -> sa.Select[Any]:
    start = sa.bindparam("start", type_=sa.BigInteger)
    query = query.where(position > sa.bindparam("expired", type_=sa.BigInteger))
    if kind.newest_first:
        query = query.where(position < start).order_by(position.desc())
    else:
        query = query.where(position > start).order_by(position)
    if kind.has_since:
        query = query.where(
            _entry.time >= sa.bindparam("since", type_=_entry.time.type)
        )
    if kind.has_until:
        query = query.where(
            _entry.time <= sa.bindparam("until", type_=_entry.time.type)
        )
    return query.limit(sa.bindparam("size", type_=sa.Integer))

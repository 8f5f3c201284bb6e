"""Tidying the journal: gaps are said, the inbox is filed, old entries are removed."""

import datetime
import time
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.objects import clock
from placement.objects.journal import filing, packing, recording
from placement.objects.journal.keeping import Keeper
from placement_foundation.database.storage import Database

# How often old entries are removed, by whichever process comes first, in seconds.
EVERY = 60
# How many entries are removed in one transaction.
BATCH = 500
# For how long to rest after each, compared with what it took: requests come first.
REST = 4.0
# The longest rest, in seconds.
LONGEST_REST = 10.0

_entry = models.JOURNAL_ENTRIES.c
_word = models.JOURNAL_WORDS.c
_OLDEST = (
    sa.select(models.JOURNAL_ENTRIES)
    .order_by(_entry.position)
    .limit(sa.bindparam("most", type_=sa.Integer))
)
_FORGET_WORD = sa.delete(models.JOURNAL_WORDS).where(
    _word.word == sa.bindparam("of_word"), _word.position <= sa.bindparam("until")
)


def tidy(keeper: Keeper) -> None:
    """Do what is due. Any process may do this at any time, as often as it likes.

    :raises Exception: the database is in trouble
    """
    database = keeper.database
    if not database.read(filing.is_usable):
        return
    if keeper.has_missed:
        database.write(recording.note_gap)
    filing.file_all(database)
    if database.read(_is_due) and database.write(_take_turn):
        expire(database, keeper.days)


def expire(database: Database, days: int) -> int:
    """Remove entries older than some days, in small batches; return how many."""
    before = clock.now() - datetime.timedelta(days=days)
    total = 0
    while True:
        begun = time.monotonic()
        removed = database.write(lambda connection: _expire_some(connection, before))
        if not removed:
            return total
        total += removed
        time.sleep(min(REST * (time.monotonic() - begun), LONGEST_REST))


def _is_due(connection: sa.Connection) -> bool:
    return _limit() >= filing.load_state(connection).tidied


def _take_turn(connection: sa.Connection) -> bool:
    """Return whether no other process has removed entries lately."""
    state = filing.load_state(connection, lock=True)
    if state.tidied > _limit():
        return False
    filing.set_state(connection, tidied=clock.now())
    return True


def _limit() -> datetime.datetime:
    return clock.now() - datetime.timedelta(seconds=EVERY)


def _expire_some(connection: sa.Connection, before: datetime.datetime) -> int:
    """Remove the oldest entries that are older than a moment; return how many."""
    state = filing.load_state(connection, lock=True)
    rows = _select_old(connection, state, before)
    if not rows:
        return 0
    last, documents = rows[-1], [packing.unpack(row.entry) for row in rows]
    words = {word for each in documents for word in packing.words_of(each)}
    forgotten = [
        {"of_word": number, "until": last.position}
        for number in sorted(map(packing.hash_of, words))
    ]
    connection.execute(_FORGET_WORD, forgotten)
    connection.execute(
        sa.delete(models.JOURNAL_ENTRIES).where(_entry.position <= last.position)
    )
    if last.position > state.expired:
        filing.set_state(
            connection,
            expired=last.position,
            expired_token=packing.token_of(documents[-1]),
            begins=max(state.begins, last.time),
            # No other process need begin with the same.
            tidied=clock.now(),
        )
    return len(rows)


def _select_old(
    connection: sa.Connection, state: filing.State, before: datetime.datetime
) -> list[Any]:
    """Return the oldest entries, up to the first that is to be kept."""
    rows = []
    for row in connection.execute(_OLDEST, {"most": BATCH}):
        if row.time >= before and row.position > state.expired:
            break
        rows.append(row)
    return rows

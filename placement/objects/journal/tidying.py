"""Tidying the journal: gaps are recorded, the inbox is filed, old entries go."""

import datetime
import itertools
import time
from collections.abc import Callable

import sqlalchemy as sa

from placement.db import models
from placement.objects import clock
from placement.objects.journal import filing, packing, recording
from placement.objects.journal.keeping import Keeper
from placement.objects.ledger import Ledger
from placement_foundation.database import storage
from placement_foundation.database.origin import Origin
from placement_foundation.database.storage import Database

# How often old entries are removed, by whichever process comes first, in seconds.
EVERY = 60
# How often to look whether a gap is to be recorded, in seconds: until it is, only one
# process knows of it.
LOOK_EVERY = 1
# What makes such an entry.
NOTICED = "noticed by the service"
# After how many entries more the journal begins, and how many of those are removed in
# one transaction: they are so few that hardly a request notices those that compute
# beside it.
STEP = 500
BATCH = 50
# For how long to rest after each, compared with what it took: requests come first.
REST = 4.0
# The longest rest, in seconds.
LONGEST_REST = 10.0

_entry = models.JOURNAL_ENTRIES.c
_word = models.JOURNAL_WORDS.c
_state = models.JOURNAL_STATE.c
_most = sa.bindparam("most", type_=sa.Integer)
_NEXT = (
    sa.select(_entry.position, _entry.time)
    .where(_entry.position > sa.bindparam("expired"))
    .order_by(_entry.position)
    .limit(_most)
)
_OLDEST = (
    sa.select(_entry.position, _entry.entry)
    .where(_entry.position <= sa.select(_state.expired).scalar_subquery())
    .order_by(_entry.position)
    .limit(_most)
)
_ENTRY = sa.select(_entry.entry).where(_entry.position == sa.bindparam("wanted"))
_first = sa.bindparam("first", type_=sa.BigInteger)
_last = sa.bindparam("last", type_=sa.BigInteger)
# By both columns of the key, for words that many entries have: PostgreSQL would pass
# all that were removed before.
_FORGET_WORDS = sa.delete(models.JOURNAL_WORDS).where(
    _word.word.in_(sa.bindparam("words", expanding=True)),
    _word.position.between(_first, _last),
)
_REMOVE = sa.delete(models.JOURNAL_ENTRIES).where(
    _entry.position.between(_first, _last)
)


def tidy(keeper: Keeper) -> None:
    """Do what is due. Any process may do this at any time, as often as it likes.

    :raises Exception: the database is in trouble
    """
    database = keeper.database
    if not database.read(filing.is_usable):
        return
    # Another process may have been without a journal since this one began.
    filing.resume(database)
    filing.file_all(database)
    if database.read(_is_due) and database.write(_take_turn):
        expire(database, keeper.days)


def record_gap(keeper: Keeper, monotonic: Callable[[], float] = time.monotonic) -> None:
    """Record that there were changes that were not recorded, if there were.

    The first is recorded at once. As long as another service goes on writing, one a
    minute is enough for readers to begin anew.

    :param monotonic: returns the time, in seconds
    :raises Exception: the database is in trouble
    """
    if (
        keeper.has_missed
        and monotonic() >= keeper.next_gap
        and keeper.database.read(filing.is_usable)
    ):
        Ledger(keeper.database, keeper, Origin(NOTICED)).write(recording.note_gap)
        keeper.next_gap = monotonic() + EVERY


def expire(database: Database, days: int) -> int:
    """Remove entries older than some days, in small batches; return how many."""
    before = clock.now() - datetime.timedelta(days=days)
    total = 0
    while True:
        begun = time.monotonic()
        removed = database.write(_remove_some)
        if not removed and not database.write(lambda some: _begin_later(some, before)):
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


def _begin_later(connection: sa.Connection, before: datetime.datetime) -> bool:
    """Let the journal begin after its oldest entries that are older than a moment.

    Readers need the lock to file what is new, so nothing is removed under it.

    :return: whether there were any
    """
    state = filing.load_state(connection, lock=True)
    following = connection.execute(_NEXT, {"expired": state.expired, "most": STEP})
    old = list(itertools.takewhile(lambda row: row.time < before, following))
    if not old:
        return False
    last = old[-1]
    entry = connection.execute(_ENTRY, {"wanted": last.position}).scalar_one()
    filing.set_state(
        connection,
        expired=last.position,
        expired_token=packing.token_of(packing.unpack(entry)),
        begins=max(state.begins, last.time),
        # No other process need begin with the same.
        tidied=clock.now(),
    )
    return True


def _remove_some(connection: sa.Connection) -> int:
    """Remove the oldest entries that the journal begins after; return how many."""
    rows = connection.execute(_OLDEST, {"most": BATCH}).all()
    if not rows:
        return 0
    documents = [packing.unpack(row.entry) for row in rows]
    words = {word for each in documents for word in packing.words_of(each)}
    ends = {"first": rows[0].position, "last": rows[-1].position}
    for hashes in storage.chunks(sorted(map(packing.hash_of, words))):
        connection.execute(_FORGET_WORDS, {"words": hashes, **ends})
    connection.execute(_REMOVE, ends)
    return len(rows)

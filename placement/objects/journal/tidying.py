"""Tidying the journal: gaps are recorded, the inbox is filed, old entries go."""

import datetime
import itertools
import time
from collections.abc import Callable

import sqlalchemy as sa

from placement.db import models
from placement.model.journal import token_of
from placement.objects import clock
from placement.objects.journal import filed_entry, filing, recording
from placement.objects.journal.keeping import Keeper
from placement.objects.ledger import Ledger
from placement_foundation.database import storage
from placement_foundation.database.origin import Origin
from placement_foundation.database.storage import Database

# How often old entries are removed, by whichever process comes first, in seconds.
EVERY = 60
# How often to look whether a gap is to be recorded, in seconds: until then, its only
# trace is in the memory of one process.
LOOK_EVERY = 1
# The origin of such an entry.
NOTICED = "noticed by the service"
# How many entries one transaction removes: requests that file entries wait for it.
BATCH = 100

_entry = models.JOURNAL_ENTRIES.c
_mention = models.JOURNAL_MENTIONS.c


def tidy(keeper: Keeper) -> None:
    """File the inbox, and remove old entries if that is due, in any process.

    :raises Exception: the database is in trouble
    """
    database = keeper.database
    if not database.read(filing.is_usable):
        return
    filing.file_all(database)
    if database.write(_take_turn):
        expire(database, keeper.days)


def record_gap(keeper: Keeper, monotonic: Callable[[], float] = time.monotonic) -> None:
    """Record a gap if there were changes without entries.

    The first gap is recorded at once. As long as another service goes on writing, one
    gap a minute is enough for readers to begin anew.

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
    while removed := database.write(lambda some: _remove_some(some, before)):
        total += removed
    return total


def _take_turn(connection: sa.Connection) -> bool:
    """Return whether no other process has removed entries lately."""
    state = filing.load_state(connection, lock=True)
    now = clock.now()
    if state.tidied > now - datetime.timedelta(seconds=EVERY):
        return False
    filing.set_state(connection, tidied=now)
    return True


def _remove_some(connection: sa.Connection, before: datetime.datetime) -> int:
    """Remove the oldest entries if they are older than a moment; return how many."""
    state = filing.load_state(connection, lock=True)
    oldest = filed_entry.ENTRIES.where(_entry.position > state.expired)
    rows = connection.execute(oldest.order_by(_entry.position).limit(BATCH))
    old = list(itertools.takewhile(lambda row: row.time < before, rows))
    if not old:
        return 0
    mentions = {
        key for each in old for key in filed_entry.mentions_of(filed_entry.parse(each))
    }
    first, last = old[0].position, old[-1].position
    for some in storage.chunks(sorted(mentions)):
        # By both columns of the key: PostgreSQL would pass all rows of a frequent
        # mention that were removed before.
        in_range = _mention.position.between(first, last)
        connection.execute(
            sa.delete(models.JOURNAL_MENTIONS).where(
                _mention.mentioned.in_(some), in_range
            )
        )
    connection.execute(
        sa.delete(models.JOURNAL_ENTRIES).where(_entry.position.between(first, last))
    )
    filing.set_state(
        connection,
        expired=last,
        expired_token=token_of(old[-1].id),
        begins=max(state.begins, old[-1].time),
        # The turn lasts as long as removals go on.
        tidied=clock.now(),
    )
    return len(old)

"""Filing: entries of the inbox get their positions, and become findable.

The ids in the inbox are drawn before transactions commit, so they become visible out of
order. Filing assigns the next positions, under one lock, to committed rows of the
inbox: rows that become visible later get later positions. Of two transactions that
change the same tree or consumer, one has committed before the other draws its id: each
sees the other's locks. So the order of their ids is right wherever both rows are
visible, and the earlier row is visible wherever the later one is.
"""

import dataclasses
import datetime
import json
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from placement.db import models
from placement.model.journal import Document, render_time, token_of
from placement.objects import clock, own_table
from placement.objects.journal import filed_entry
from placement_foundation.database import storage
from placement_foundation.database.storage import Database
from placement_foundation.database.trouble import LostRaceError

T = TypeVar("T")

TOKEN_BYTES = 6
# How many rows of the inbox are filed in one transaction.
BATCH = 200

_inbox = models.JOURNAL_INBOX.c
_state = models.JOURNAL_STATE.c
_WAITING = (
    sa.select(models.JOURNAL_INBOX)
    .order_by(_inbox.id)
    .limit(sa.bindparam("most", type_=sa.Integer))
)
# The year in which the journal of an older release begins that records nothing.
NEVER = datetime.datetime(9999, 1, 1)
_HAS_BEGUN = sa.exists(sa.select(_state.id).where(_state.begins < NEVER))
_IS_DUE = sa.select(sa.exists(sa.select(_inbox.id)) | ~_HAS_BEGUN)
_MARK = sa.select(sa.func.count(), sa.func.max(_inbox.id), sa.func.max(_inbox.time))
_STATE = sa.select(models.JOURNAL_STATE)
TABLES = (
    models.JOURNAL_INBOX,
    models.JOURNAL_ENTRIES,
    models.JOURNAL_MENTIONS,
    models.JOURNAL_STATE,
)


@dataclasses.dataclass(frozen=True, slots=True)
class FilingState:
    """The positions up to which the journal is filed, and expired.

    ``position`` and ``token`` are those of the last filed entry, ``expired`` and
    ``expired_token`` those of the last removed one. All changes since ``begins`` are in
    the journal. Old entries were last removed at ``tidied``. While the journal is
    switched off, it has no ``life``.
    """

    life: str
    position: int
    token: str
    expired: int
    expired_token: str
    begins: datetime.datetime
    tidied: datetime.datetime


_EPOCH = datetime.datetime(1970, 1, 1)
_NONE = FilingState("", 0, "", 0, "", NEVER, _EPOCH)


def load_state(connection: sa.Connection, *, lock: bool = False) -> FilingState:
    """Return the state of the journal.

    :param lock: whether to keep other processes from filing until this commits
    """
    query = _STATE.with_for_update() if lock else _STATE
    row = connection.execute(query).one_or_none()
    if lock and (row is None or row.begins == NEVER):
        _begin(connection)
        row = connection.execute(query).one()
    return FilingState(*row[1:]) if row else _NONE


def _begin(connection: sa.Connection) -> None:
    """Begin another life of the journal, now: all earlier cursors are void."""
    newest = sa.select(sa.func.max(models.JOURNAL_ENTRIES.c.position))
    position = connection.scalar(newest) or 0
    token, now = secrets.token_hex(TOKEN_BYTES), clock.now()
    life = secrets.token_hex(TOKEN_BYTES)
    row = (1, life, position, token, position, token, now, now)
    connection.execute(sa.delete(models.JOURNAL_STATE))
    connection.execute(sa.insert(models.JOURNAL_STATE).values(row))


def file_all(database: Database) -> None:
    """File all rows of the inbox; let the journal begin if it has not.

    :raises DatabaseUnavailable: the database cannot be written
    """
    while database.read(_is_due) and database.write(file_some):
        pass


def _is_due(connection: sa.Connection) -> bool:
    """Return whether there are rows in the inbox, or the journal has to begin."""
    return bool(connection.scalar(_IS_DUE))


def read(database: Database, work: Callable[[sa.Connection, FilingState], T]) -> T:
    """File all entries, then run work in a transaction with the state of the journal.

    :raises DatabaseUnavailable: the database cannot be read, or cannot be written
    """
    file_all(database)
    return database.read(lambda connection: work(connection, load_state(connection)))


def mark_waiting(connection: sa.Connection) -> str:
    """Return a mark of the rows in the inbox: other rows have another mark."""
    return " ".join(map(str, connection.execute(_MARK).one()))


def file_some(connection: sa.Connection) -> int:
    """File the oldest rows of the inbox, and return how many."""
    state = load_state(connection, lock=True)
    rows = connection.execute(_WAITING, {"most": BATCH}).all()
    if rows:
        _file(connection, state.position, rows)
    return len(rows)


def list_waiting(connection: sa.Connection) -> list[Document]:
    """Return the entries that are not filed yet, the oldest first."""
    rows = connection.execute(sa.select(models.JOURNAL_INBOX).order_by(_inbox.id))
    return [document for _, document in _documents(rows.all())]


def _file(connection: sa.Connection, position: int, rows: Sequence[Any]) -> None:
    """Move rows of the inbox to the positions after one."""
    entries, mentions = [], []
    for moment, document in _documents(rows):
        position += 1
        entries.append(filed_entry.row_of(position, moment, document))
        for mention in filed_entry.mentions_of(document):
            mentions.append({"mentioned": mention, "position": position})
    for table, values in (
        (models.JOURNAL_ENTRIES, entries),
        (models.JOURNAL_MENTIONS, mentions),
    ):
        for chunk in storage.chunks(values):
            connection.execute(sa.insert(table), chunk)
    ids = [row.id for row in rows]
    gone = sa.delete(models.JOURNAL_INBOX).where(_inbox.id.in_(ids))
    if connection.execute(gone).rowcount != len(ids):
        raise LostRaceError("another process has filed the same entries")
    set_state(connection, position=position, token=token_of(document["id"]))


def _documents(
    rows: Iterable[Any],
) -> list[tuple[datetime.datetime, dict[str, Any]]]:
    """Return the entries in rows of the inbox, complete, each with its time."""
    documents = []
    for row in rows:
        content = json.loads(row.entries)
        time = render_time(row.time)
        for document in content["entries"]:
            documents.append((row.time, {**content["by"], **document, "time": time}))
    return documents


def set_state(connection: sa.Connection, **values: Any) -> None:
    """Change the state, which is locked."""
    connection.execute(sa.update(models.JOURNAL_STATE).values(values))


def is_usable(connection: sa.Connection) -> bool:
    """Return whether the tables of the journal are there, and may be written."""
    return all(own_table.is_writable(connection, table) for table in TABLES)


def switch(database: Database, *, on: bool) -> None:
    """Let the journal begin, unless it has begun already, or end its life.

    Otherwise a cursor would miss the changes until the journal is switched on again.

    :raises DatabaseUnavailable: the database cannot be read, or cannot be written
    """
    if database.read(is_usable):
        if on:
            file_all(database)
        else:
            database.write(_end)


def _end(connection: sa.Connection) -> None:
    connection.execute(sa.delete(models.JOURNAL_STATE))
    connection.execute(sa.delete(models.JOURNAL_INBOX))

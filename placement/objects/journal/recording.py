"""Recording entries: noted while a transaction writes, stored just before it commits.

Each transaction takes one more INSERT. It comes after the change log's statement, which
locks the rows of the changed trees until the commit: so two transactions that change
the same tree draw their ids in the order in which they commit.
"""

import dataclasses
import functools
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.model import entry
from placement.model.entry import Entry
from placement.objects import change_log, clock, own_table
from placement.objects.journal import keeping
from placement_foundation.database import origin, storage

# How many entries are stored in one row, so that no row is too long for a database.
MOST_IN_ROW = 500

# The key of what is to be recorded, among the notes on a transaction.
_PENDING = "entries"
_GAP = Entry(entry.GAP, None)


class _Pending:
    """The entries of a transaction so far, and the generations of its providers."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str | None], Entry] = {}
        self.generations: dict[str, int] = {}

    def add(self, new: Entry) -> None:
        key = new.type, new.subject
        known = self.entries.get(key)
        self.entries[key] = known.then(new) if known else new


def note_trees(
    connection: sa.Connection,
    root_ids: Iterable[int],
    entries: Iterable[Entry],
    generations: Mapping[str, int],
) -> None:
    """Record, when this commits, that trees have changed, and what has.

    :param generations: of providers, as they are now, by UUID
    """
    change_log.note_trees(connection, root_ids)
    _note(connection, entries, generations)


def note_names(connection: sa.Connection, entries: Iterable[Entry]) -> None:
    """Record, when this commits, that traits or resource classes have changed."""
    change_log.note_names(connection)
    _note(connection, entries)


def note_everything(connection: sa.Connection) -> None:
    """Record, when this commits, that everything may have changed."""
    change_log.note_everything(connection)
    _note(connection, [_GAP])


def note_lease(
    connection: sa.Connection,
    kind: str,
    consumer_uuid: str,
    before: str | None,
    after: str | None,
) -> None:
    """Record, when this commits, what happened to the lease of a consumer.

    :param kind: one of the types that begin with ``lease.``
    :param before: when it expired so far, in ISO 8601; None if there was none
    :param after: when it expires now; None if it is gone
    """
    old = {"expires_at": before} if before else None
    new = {"expires_at": after} if after else None
    _note(connection, [Entry(kind, consumer_uuid, old, new)])


def note_gap(connection: sa.Connection) -> None:
    """Record, when this commits, that there were changes that were not recorded."""
    _note(connection, [_GAP])


def _note(
    connection: sa.Connection,
    entries: Iterable[Entry],
    generations: Mapping[str, int] | None = None,
) -> None:
    if keeping.keeper_of(connection) is None:
        return
    notes = storage.notes(connection)
    pending: _Pending | None = notes.get(_PENDING)
    if pending is None:
        pending = notes[_PENDING] = _Pending()
        storage.at_end(connection, _store, last=True)
    for each in entries:
        pending.add(each)
    pending.generations.update(generations or {})


def _store(connection: sa.Connection) -> None:
    """Write the entries of a transaction into the inbox."""
    pending: _Pending = storage.notes(connection)[_PENDING]
    keeper = keeping.keeper_of(connection)
    changed = [each for each in pending.entries.values() if _is_change(each)]
    if not changed or keeper is None:
        return
    if not own_table.is_writable(connection, models.JOURNAL_INBOX):
        keeper.miss()
        return
    has_missed = keeper.has_missed
    if has_missed:
        changed.insert(0, _GAP)
    documents = [_render(each, pending.generations) for each in changed]
    _insert(connection, documents)
    if has_missed:
        # Should this not commit, another entry says so once more.
        keeper.catch_up()


def _is_change(each: Entry) -> bool:
    return (
        each.before != each.after
        or each.type.endswith((".created", ".deleted", ".confirmed"))
        or each.type == entry.GAP
    )


def _render(each: Entry, generations: Mapping[str, int]) -> dict[str, Any]:
    """Return an entry as JSON, without what is the same for the whole transaction."""
    generation = each.generation
    if each.subject and each.type in entry.OF_PROVIDER:
        generation = generations.get(each.subject)
    document: dict[str, Any] = {
        "id": str(uuid.uuid4()),
        "type": each.type,
        "subject": each.subject,
        "before": each.before,
        "after": each.after,
        "generation": generation,
    }
    document["root"] = each.roots[0] if len(each.roots) == 1 else None
    if len(each.roots) > 1:
        document["roots"] = each.roots
    if each.names:
        document["names"] = each.names
    if each.consumer:
        document["consumer"] = each.consumer
    return document


def _insert(connection: sa.Connection, documents: Sequence[dict[str, Any]]) -> None:
    came_from = dataclasses.asdict(origin.of(connection))
    by = {key: value for key, value in came_from.items() if value is not None}
    rows: list[dict[str, Any]] = [
        {"text": json.dumps({"by": by, "entries": chunk}, separators=(",", ":"))}
        for chunk in storage.chunks(documents, MOST_IN_ROW)
    ]
    dialect = connection.dialect.name
    if dialect == "sqlite":
        # Its own clock has no microseconds; this is the clock of the same machine.
        rows = [{**row, "now": clock.now()} for row in rows]
    own_table.execute(connection, models.JOURNAL_INBOX, _insertion(dialect), rows)


@functools.cache
def _insertion(dialect: str) -> sa.Insert:
    """Return the statement for a row of the inbox, with the time of the database."""
    clock: dict[str, sa.ColumnElement[Any]] = {
        "sqlite": sa.bindparam("now"),
        "postgresql": sa.func.timezone("utc", sa.func.clock_timestamp()),
    }
    now = clock.get(dialect, sa.func.utc_timestamp(sa.literal_column("6")))
    row = {"time": now, "entries": sa.bindparam("text")}
    return sa.insert(models.JOURNAL_INBOX).values(row)

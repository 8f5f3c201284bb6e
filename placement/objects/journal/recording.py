"""Recording entries: noted while a transaction writes, stored just before it commits.

Each transaction takes one more INSERT. It comes after the change log's UPDATE, which
locks the rows of the changed trees until the commit: so two transactions that change
the same tree draw their ids in the order in which they commit.
"""

import collections
import dataclasses
import functools
import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from placement import measure
from placement.db import models
from placement.model import entry
from placement.model.entry import Entry
from placement.objects import change_log, clock, own_table
from placement.objects.journal import keeping
from placement_foundation.database import origin, storage
from placement_foundation.database.origin import Origin
from placement_foundation.observing import telemetry

# How many entries are stored in one row, so that no row is too long for a database.
MOST_IN_ROW = 500

# The key of what is to be recorded, among the notes on a transaction.
_PENDING = "entries"
_GAP = Entry(entry.GAP, None)
_ORIGIN = tuple(field.name for field in dataclasses.fields(Origin))
_encode = json.JSONEncoder(separators=(",", ":")).encode


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
    notes = storage.notes(connection)
    pending: _Pending | None = notes.get(_PENDING)
    if pending is None:
        pending = notes[_PENDING] = _Pending()
        storage.at_end(connection, _store)
    if keeping.keeper_of(connection) is None:
        return
    for each in entries:
        pending.add(each)
    pending.generations.update(generations or {})


def _store(connection: sa.Connection) -> None:
    """Write the changes of a transaction, and then its entries into the inbox."""
    changes, entries = change_log.list_noted(connection), _list_rows(connection)
    dialect = connection.dialect.name
    if dialect == "postgresql" and len(changes) == len(entries) == 1:
        both = {**changes[0], **entries[0]}
        own_table.execute(connection, models.JOURNAL_INBOX, _both(), both)
        return
    if changes:
        own_table.execute(connection, models.FOREST_STAMPS, change_log.UPDATE, changes)
    if entries:
        own_table.execute(
            connection, models.JOURNAL_INBOX, _insertion(dialect), entries
        )


def _list_rows(connection: sa.Connection) -> list[dict[str, Any]]:
    """Return the rows of the inbox for the entries of a transaction."""
    pending: _Pending = storage.notes(connection)[_PENDING]
    keeper = keeping.keeper_of(connection)
    changed = [each for each in pending.entries.values() if _is_change(each)]
    if not changed or keeper is None:
        return []
    if not own_table.is_writable(connection, models.JOURNAL_INBOX):
        # If the commit fails, a gap too many is noted, which does no harm.
        keeper.miss()
        return []
    counts = collections.Counter(each.type for each in changed)
    storage.afterwards(connection, functools.partial(_count, counts))
    return _rows(connection, [_render(each, pending.generations) for each in changed])


def _count(counts: Mapping[str, int]) -> None:
    for kind, number in counts.items():
        telemetry.record(measure.JOURNAL_ENTRIES, number, type=kind)


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


def _rows(
    connection: sa.Connection, documents: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    by_origin = collections.defaultdict(list)
    for document in documents:
        by_origin[origin.of(connection, document["subject"])].append(document)
    # The clock of SQLite has no microseconds; this is the clock of the same machine.
    time = {"now": clock.now()} if connection.dialect.name == "sqlite" else {}
    return [
        {"text": _encode({"by": _by(each), "entries": chunk}), **time}
        for each, alike in by_origin.items()
        for chunk in storage.chunks(alike, MOST_IN_ROW)
    ]


def _by(came_from: Origin) -> dict[str, str]:
    known = {name: getattr(came_from, name) for name in _ORIGIN}
    return {name: value for name, value in known.items() if value is not None}


def _now(dialect: str) -> sa.ColumnElement[Any]:
    """Return the time of the database."""
    if dialect == "sqlite":
        return sa.bindparam("now")
    if dialect == "postgresql":
        return sa.func.timezone("utc", sa.func.clock_timestamp())
    return sa.func.utc_timestamp(sa.literal_column("6"))


@functools.cache
def _insertion(dialect: str) -> sa.Insert:
    row = {"time": _now(dialect), "entries": sa.bindparam("text")}
    return sa.insert(models.JOURNAL_INBOX).values(row).inline()


@functools.cache
def _both() -> sa.Insert:
    """Return the statement of a claim on PostgreSQL: one change, and then one row.

    The database draws the id for the inbox, and reads the clock, for each row that the
    query returns: its only one exists when the UPDATE has ended.
    """
    updated = change_log.UPDATE.returning(models.FOREST_STAMPS.c.shard).cte("updated")
    counted = sa.select(sa.func.count().label("rows")).select_from(updated).subquery()
    text = sa.bindparam("text", type_=sa.Text)
    row = sa.select(_now("postgresql"), text).where(counted.c.rows >= 0)
    return (
        sa.insert(models.JOURNAL_INBOX).from_select(["time", "entries"], row).inline()
    )

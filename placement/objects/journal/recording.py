"""Recording entries: collected while a transaction writes, stored before it commits.

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
from placement.model.entry import OF_PROVIDERS, Entry, EntryType
from placement.objects import change_log, clock, own_table
from placement.objects.journal.keeping import Keeper
from placement.objects.transaction import Transaction
from placement_foundation.database import storage
from placement_foundation.database.origin import Origin
from placement_foundation.observing import telemetry

# How many entries are stored in one row, so that no row is too long for a database.
MOST_IN_ROW = 500

_GAP = Entry(EntryType.GAP, None)
_ORIGIN = tuple(field.name for field in dataclasses.fields(Origin))
_encode = json.JSONEncoder(separators=(",", ":")).encode


def note_gap(tx: Transaction) -> None:
    """Record a gap: there were changes without entries."""
    tx.record([_GAP])


def store(tx: Transaction, keeper: Keeper | None) -> None:
    """Write the changes of a transaction, and then its entries into the inbox.

    :param keeper: the keeper of the journal; None if there is no journal
    """
    updates = change_log.list_updates(tx)
    entries = _list_rows(tx, keeper) if keeper else []
    if updates:
        own_table.execute(
            tx.connection, models.FOREST_STAMPS, change_log.UPDATE, updates
        )
    if entries:
        insertion = _insertion(tx.connection.dialect.name)
        own_table.execute(tx.connection, models.JOURNAL_INBOX, insertion, entries)


def _list_rows(tx: Transaction, keeper: Keeper) -> list[dict[str, Any]]:
    """Return the rows of the inbox for the entries of a transaction."""
    changed = [each for each in tx.entries.values() if _is_change(each)]
    if not changed:
        return []
    if not own_table.is_writable(tx.connection, models.JOURNAL_INBOX):
        # If the commit fails, there is a gap too many, which does no harm.
        keeper.miss()
        return []
    if keeper.has_missed:
        # Entries after a gap come after it, however soon the process ends.
        changed = [_GAP, *(each for each in changed if each != _GAP)]
        tx.after_commit.append(functools.partial(keeper.catch_up, keeper.missed))
    counts = collections.Counter(each.type for each in changed)
    tx.after_commit.append(functools.partial(_count, counts))
    return _rows(tx, [_render(each, tx.generations) for each in changed])


def _count(counts: Mapping[EntryType, int]) -> None:
    for kind, number in counts.items():
        telemetry.record(measure.JOURNAL_ENTRIES, number, type=kind)


def _is_change(each: Entry) -> bool:
    return (
        each.before != each.after
        or each.type.endswith((".created", ".deleted", ".confirmed"))
        or each.type == EntryType.GAP
    )


def _render(each: Entry, generations: Mapping[str, int]) -> dict[str, Any]:
    """Return an entry as JSON, without the members that all entries of a row share."""
    generation = each.generation
    # A provider that is gone has no generation.
    if each.type.startswith(OF_PROVIDERS) and each.after is not None:
        generation = generations.get(each.subject or "")
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


def _rows(tx: Transaction, documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    by_origin = collections.defaultdict(list)
    for document in documents:
        by_origin[tx.origin_of(document["subject"])].append(document)
    # The clock of SQLite has no microseconds; this is the clock of the same machine.
    time = {"now": clock.now()} if tx.connection.dialect.name == "sqlite" else {}
    return [
        {"text": _encode({"by": _by(each), "entries": chunk}), **time}
        for each, alike in by_origin.items()
        for chunk in storage.chunks(alike, MOST_IN_ROW)
    ]


def _by(came_from: Origin) -> dict[str, str]:
    fields = {name: getattr(came_from, name) for name in _ORIGIN}
    return {name: value for name, value in fields.items() if value is not None}


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

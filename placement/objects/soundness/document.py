"""Documents that cannot be read, and entries that the journal lacks."""

import json
from collections.abc import Callable, Iterator, Set
from typing import Any, NamedTuple

import sqlalchemy as sa

from placement.db import models
from placement.objects import declared
from placement.objects.journal import packing
from placement.objects.soundness.rule import BrokenRule, Rule

# How many documents are in memory at a time.
BATCH = 1_000

_entry = models.JOURNAL_ENTRIES.c
_state = models.JOURNAL_STATE.c
_before = models.JOURNAL_ENTRIES.alias("before").c
_expired = sa.select(_state.expired).scalar_subquery()
_lacks_the_one_before = ~sa.exists(1).where(_before.position == _entry.position - 1)
# Positions have no gaps: before these, or at the end, entries are missing.
_HOLES = (
    sa.select(_entry.position.label("before"))
    .where(_entry.position > _expired + 1, _lacks_the_one_before)
    .union(
        sa.select((_state.position + 1).label("before")).where(
            _state.position > _state.expired,
            ~sa.exists(1).where(_entry.position == _state.position),
        )
    )
)


class _Document(NamedTuple):
    """Documents in a table: where, what names a row, and which rows count.

    :param parse: fails with a document that cannot be read
    """

    name: str
    column: sa.Column[Any]
    key: tuple[sa.Column[Any], ...]
    parse: Callable[[Any], object] = json.loads
    condition: sa.ColumnElement[bool] = sa.true()


_DOCUMENTS = (
    _Document(
        "declaration-document",
        models.DECLARATIONS.c.document,
        (models.DECLARATIONS.c.provider_uuid, models.DECLARATIONS.c.owner),
        declared.parse_document,
    ),
    _Document(
        "note-document",
        models.NOTES.c.document,
        (models.NOTES.c.kind, models.NOTES.c.owner),
    ),
    _Document(
        "journal-waiting",
        models.JOURNAL_INBOX.c.entries,
        (models.JOURNAL_INBOX.c.id,),
    ),
    _Document(
        "journal-entry",
        _entry.entry,
        (_entry.position,),
        packing.unpack,
        _entry.position > _expired,
    ),
)


def check(
    connection: sa.Connection, present: Set[str], most: int | None
) -> Iterator[BrokenRule]:
    """Yield a finding for each table with documents that cannot be read."""
    for each in _DOCUMENTS:
        if str(each.column.table) in present:
            yield from _check_documents(connection, each, most)
    if {models.JOURNAL_ENTRIES.name, models.JOURNAL_STATE.name} <= present:
        yield from _check_holes(connection, most)


def _check_documents(
    connection: sa.Connection, documents: _Document, most: int | None
) -> Iterator[BrokenRule]:
    query = (
        sa.select(*documents.key, documents.column)
        .where(documents.condition)
        .order_by(*documents.key)
        .execution_options(yield_per=BATCH)
    )
    names = [column.name for column in documents.key]
    damaged = []
    for *key, text in connection.execute(query):
        try:
            documents.parse(text)
        except Exception:
            damaged.append(dict(zip(names, key, strict=True)))
    if damaged:
        meaning = f"a document in {documents.column.table} that cannot be read"
        yield BrokenRule(
            Rule(documents.name, meaning, query), len(damaged), damaged[:most]
        )


def _check_holes(connection: sa.Connection, most: int | None) -> Iterator[BrokenRule]:
    holes = connection.scalars(_HOLES).all()
    if holes:
        rows = [{"before_position": position} for position in sorted(holes)]
        nothing = sa.select(_entry.position).where(sa.false())
        rule = Rule("journal-hole", "entries of the journal are missing", nothing)
        yield BrokenRule(rule, len(rows), rows[:most])

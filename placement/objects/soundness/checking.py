"""Finding rows that break rules, and mending those with one right answer."""

import dataclasses
import functools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.db.own import content
from placement.objects import declared
from placement.objects.soundness.rule import RULES, Removal, Repair, Rule
from placement.objects.transaction import Transaction
from placement_foundation.database import sequence

# How many rows a repair may remove if the caller gives no number.
HANDFUL = 5
# How many documents are in memory at a time.
BATCH = 1_000


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """A broken rule, with the number of the rows that break it, and the first ones."""

    name: str
    meaning: str
    count: int
    rows: Sequence[dict[str, Any]]
    damage: bool = True
    repair: Repair | None = None


class RemovalRefusedError(Exception):
    """A repair would remove more rows than it may.

    :param rows: how many rows
    :param shared: how many of them are allocations of consumers that keep others
    """

    def __init__(self, rows: int, shared: int) -> None:
        super().__init__(rows, shared)
        self.rows = rows
        self.shared = shared


def check(
    connection: sa.Connection, most: int | None = None, rules: Iterable[Rule] = RULES
) -> Iterator[Finding]:
    """Yield a finding for each rule that is broken.

    :param most: how many rows are in each finding; None means all
    """
    present = set(sa.inspect(connection).get_table_names())
    for rule in rules:
        if rule.needs is None or rule.needs in present:
            rows = [dict(row) for row in connection.execute(rule.broken).mappings()]
            if rows:
                yield Finding(
                    rule.name,
                    rule.meaning,
                    len(rows),
                    rows[:most],
                    rule.damage,
                    rule.repair,
                )
    yield from _check_content(connection, present)
    yield from _check_sequences(connection)
    yield from _check_documents(connection, present, most)
    if {models.JOURNAL_ENTRIES.name, models.JOURNAL_STATE.name} <= present:
        holes = [{"before_position": each} for each in connection.scalars(_HOLES)]
        if holes:
            meaning = "entries of the journal are missing"
            yield Finding("journal-hole", meaning, len(holes), holes[:most])


def repair(
    tx: Transaction,
    findings: Iterable[Finding],
    most_removed: int | None = None,
) -> dict[str, int]:
    """Mend rows with one right answer; return how many rows were mended, by rule.

    To mend one row may break another rule: a consumer may lose all its allocations.

    :param most_removed: how many rows may be removed; None means a handful, and no
        allocation of a consumer that keeps others
    :raises RemovalRefusedError: the repairs would remove more
    """
    mended: Counter[str] = Counter()
    removed = shared = 0
    # A repair leads to another one at most once for each rule.
    for _ in RULES:
        before = mended.total()
        for each in findings:
            if isinstance(each.repair, Removal):
                shared += each.repair.count_shared(tx.connection)
            count = each.repair(tx) if each.repair else 0
            removed += count if isinstance(each.repair, Removal) else 0
            mended[each.name] += count
        if mended.total() == before:
            break
        findings = list(check(tx.connection, most=1))
    allowed = HANDFUL if most_removed is None else most_removed
    if removed > allowed or (shared and most_removed is None):
        raise RemovalRefusedError(removed, shared)
    if +mended:
        tx.record_all()
    return dict(+mended)


def _check_sequences(connection: sa.Connection) -> Iterator[Finding]:
    """Yield a finding if PostgreSQL would draw ids that are taken."""
    # The ids of resource classes are not drawn.
    classes = models.ResourceClass.__tablename__
    tables = [
        each for each in models.Base.metadata.sorted_tables if each.name != classes
    ]
    behind = sequence.list_behind(connection, tables)
    if behind:

        def mend(tx: Transaction) -> int:
            sequence.count_on(tx.connection, behind)
            return len(behind)

        meaning = "the next id that the database draws is taken"
        rows = [{"table": table.name} for table in behind]
        yield Finding("sequence", meaning, len(rows), rows, repair=mend)


def _check_content(connection: sa.Connection, present: Set[str]) -> Iterator[Finding]:
    """Yield a finding for each of our own tables that lacks rows of its content."""
    for table, list_missing in content.CONTENT.rows.items():
        missing = list_missing(connection) if table.name in present else ()
        if missing:
            meaning = f"{table.name} lacks rows that it cannot be without"
            rows = [{"table": table.name}]
            mend = functools.partial(_complete, table)
            yield Finding(
                f"rows-of-{table.name}", meaning, len(missing), rows, repair=mend
            )


def _complete(table: sa.Table, tx: Transaction) -> int:
    rows = content.CONTENT.rows[table](tx.connection)
    if rows:
        tx.connection.execute(sa.insert(table), rows)
    return len(rows)


_entry, _state = models.JOURNAL_ENTRIES.c, models.JOURNAL_STATE.c
_before = models.JOURNAL_ENTRIES.alias("before").c
_expired = sa.select(_state.expired).scalar_subquery()
# Positions have no gaps: before these, or at the end, entries are missing.
_HOLES = (
    sa.select(_entry.position.label("before"))
    .where(
        _entry.position > _expired + 1,
        ~sa.exists(1).where(_before.position == _entry.position - 1),
    )
    .union(
        sa.select((_state.position + 1).label("before")).where(
            _state.position > _state.expired,
            ~sa.exists(1).where(_entry.position == _state.position),
        )
    )
    .order_by("before")
)
# The documents in our own tables: the rule, the column, and the parser.
_DOCUMENTS: Sequence[tuple[str, sa.Column[Any], Callable[[Any], object]]] = (
    ("declaration-document", models.DECLARATIONS.c.document, declared.parse_document),
    ("note-document", models.NOTES.c.document, json.loads),
    ("journal-waiting", models.JOURNAL_INBOX.c.entries, json.loads),
    ("journal-entry", _entry.document, json.loads),
)


def _check_documents(
    connection: sa.Connection, present: Set[str], most: int | None
) -> Iterator[Finding]:
    """Yield a finding for each table with documents that cannot be read."""
    for name, column, parse in _DOCUMENTS:
        if column.table.name not in present:
            continue
        key = column.table.primary_key
        query = sa.select(*key, column).order_by(*key)
        if column is _entry.document:
            query = query.where(_entry.position > _expired)
        damaged = []
        for row in connection.execute(query.execution_options(yield_per=BATCH)):
            try:
                parse(row[-1])
            except Exception:
                damaged.append({each.name: row._mapping[each] for each in key})
        if damaged:
            meaning = f"a document in {column.table.name} that cannot be read"
            yield Finding(name, meaning, len(damaged), damaged[:most])

"""Looking for rows that break the rules, and mending what has one right answer."""

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.db.own import content
from placement.objects.journal import recording
from placement.objects.soundness import document
from placement.objects.soundness.rule import RULES, BrokenRule, Removal, Rule
from placement_foundation.database import sequence
from placement_foundation.database.migration import ListMissing

# How many rows a repair removes without a number that allows it.
HANDFUL = 5


class RemovalRefusedError(Exception):
    """A repair would remove more than it may.

    :param rows: how many rows
    :param shared: how many of them are allocations of consumers that keep others
    """

    def __init__(self, rows: int, shared: int) -> None:
        super().__init__(rows, shared)
        self.rows = rows
        self.shared = shared


def check(
    connection: sa.Connection,
    most: int | None = None,
    rules: Iterable[Rule] = RULES,
    *,
    at_once: bool = True,
) -> Iterator[BrokenRule]:
    """Yield a finding for each rule that is broken.

    :param most: how many of the rows that break one are read; None means all
    :param at_once: whether one statement looks for all of them, or each for one, so
        that each may take as long as a statement is allowed to
    """
    present = frozenset(sa.inspect(connection).get_table_names())
    checkable = tuple(
        rule for rule in rules if {str(each) for each in rule.needs} <= present
    )
    parts = [checkable] if at_once else [(rule,) for rule in checkable]
    counts = [
        count
        for part in parts
        if part
        for count in connection.execute(_count_each(part)).one()
    ]
    for rule, count in zip(checkable, counts, strict=True):
        if count:
            shown = connection.execute(rule.broken.limit(most)).mappings()
            yield BrokenRule(rule, count, [dict(row) for row in shown])
    yield from _check_content(connection, present)
    yield from _check_sequences(connection)
    yield from document.check(connection, present, most)


def repair(
    connection: sa.Connection,
    findings: Sequence[BrokenRule],
    most_removed: int | None = None,
) -> dict[str, int]:
    """Mend what has one right answer; return how many rows were, by rule.

    Mending one may break another: a consumer may be left without allocations.

    :param most_removed: how many rows may be removed; None means a handful, and no
        allocation of a consumer that keeps others
    :raises RemovalRefusedError: more would be removed
    """
    mended: Counter[str] = Counter()
    removed = shared = 0
    # One leads to another at most once for each rule.
    for _ in RULES:
        in_this_round: Counter[str] = Counter()
        for rule in [each.rule for each in findings if each.rule.repair]:
            is_removal = isinstance(rule.repair, Removal)
            if isinstance(rule.repair, Removal):
                shared += rule.repair.count_shared(connection)
            count = rule.repair(connection) if rule.repair else 0
            removed += count if is_removal else 0
            in_this_round[rule.name] += count
        if not +in_this_round:
            break
        mended += in_this_round
        findings = list(check(connection, most=1, at_once=False))
    allowed = HANDFUL if most_removed is None else most_removed
    if removed > allowed or (shared and most_removed is None):
        raise RemovalRefusedError(removed, shared)
    if mended:
        recording.note_everything(connection)
    return mended


@functools.cache
def _count_each(rules: tuple[Rule, ...]) -> sa.Select[*tuple[Any, ...]]:
    """Return one statement for how many rows break each rule."""
    return sa.select(
        *(
            sa.select(sa.func.count())
            .select_from(rule.broken.subquery())
            .scalar_subquery()
            for rule in rules
        )
    )


def _check_sequences(connection: sa.Connection) -> Iterator[BrokenRule]:
    """Yield a finding if PostgreSQL would draw ids that are taken."""
    # The ids of resource classes are not drawn.
    classes = models.ResourceClass.__tablename__
    tables = [
        each for each in models.Base.metadata.sorted_tables if each.name != classes
    ]
    behind = sequence.list_behind(connection, tables)
    if behind:
        nothing = sa.select(models.Allocation.id).where(sa.false())
        meaning = "the next id that the database draws is taken"
        mend = functools.partial(_count_on, behind)
        rule = Rule("sequence", meaning, nothing, repair=mend)
        rows = [{"table": table.name} for table in behind]
        yield BrokenRule(rule, len(rows), rows)


def _count_on(tables: Sequence[sa.Table], connection: sa.Connection) -> int:
    sequence.count_on(connection, tables)
    return len(tables)


def _check_content(
    connection: sa.Connection, present: frozenset[str]
) -> Iterator[BrokenRule]:
    """Yield a finding if our own tables lack rows that they cannot be without."""
    for table, list_missing in content.CONTENT.rows.items():
        missing = list_missing(connection) if table.name in present else ()
        if missing:
            nothing = sa.select(table).where(sa.false())
            meaning = f"{table.name} lacks rows that it cannot be without"
            mend = functools.partial(_complete, table, list_missing)
            rule = Rule(f"rows-of-{table.name}", meaning, nothing, repair=mend)
            yield BrokenRule(rule, len(missing), [{"table": table.name}])


def _complete(
    table: sa.Table, list_missing: ListMissing, connection: sa.Connection
) -> int:
    rows = list_missing(connection)
    if rows:
        connection.execute(sa.insert(table), rows)
    return len(rows)

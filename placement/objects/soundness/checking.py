"""Looking for rows that break the rules, and mending what has one right answer."""

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import util

from placement.db import models
from placement.db.own import content
from placement.objects.journal import recording
from placement.objects.soundness import tree
from placement.objects.soundness.rule import RULES, Rule
from placement_foundation.database import storage
from placement_foundation.database.migration import ListMissing

Provider = models.ResourceProvider


@dataclasses.dataclass(frozen=True, slots=True)
class BrokenRule:
    """A broken rule: how many rows break it, and these, or the first of them."""

    rule: Rule
    count: int
    rows: Sequence[dict[str, Any]]


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
    checkable = tuple(rule for rule in rules if _tables_of(rule) <= present)
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
    yield from _check_circles(connection, most)
    yield from _check_content(connection, present)


def repair(connection: sa.Connection, findings: Sequence[BrokenRule]) -> dict[str, int]:
    """Mend what has one right answer; return how many rows were, by rule.

    Mending one may break another: a consumer may be left without allocations.
    """
    mended: Counter[str] = Counter()
    # One leads to another at most once for each rule.
    for _ in RULES:
        in_this_round = _mend(connection, findings)
        if not in_this_round:
            break
        mended += in_this_round
        findings = list(check(connection, most=1, at_once=False))
    if mended:
        recording.note_everything(connection)
    return mended


def _mend(connection: sa.Connection, findings: Iterable[BrokenRule]) -> Counter[str]:
    """Mend once; return how many rows were, of rules with any."""
    return +Counter(
        {
            found.rule.name: found.rule.repair(connection)
            for found in findings
            if found.rule.repair
        }
    )


@functools.cache
def _tables_of(rule: Rule) -> frozenset[str]:
    from_all = util.find_tables(rule.broken, include_joins=True, check_columns=True)
    return frozenset(table.name for table in from_all if isinstance(table, sa.Table))


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


def _check_circles(connection: sa.Connection, most: int | None) -> Iterator[BrokenRule]:
    """Yield a finding if parents of providers go round in a circle."""
    circling = tree.list_circling(connection)
    if circling:
        query = sa.select(Provider.uuid, Provider.name).order_by(Provider.id)
        rows = [
            dict(row)
            for some in storage.chunks(circling[:most])
            for row in connection.execute(query.where(Provider.id.in_(some))).mappings()
        ]
        rule = Rule("parent-circle", "a provider is below itself", query)
        yield BrokenRule(rule, len(circling), rows)


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

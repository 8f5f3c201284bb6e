"""Looking for rows that break the rules, and mending what has one right answer."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import util

from placement.db import models
from placement.db.own import content
from placement.objects.journal import recording
from placement.objects.soundness import tree
from placement.objects.soundness.rule import RULES, Rule

# How many of the rows that break a rule are shown.
SHOWN = 20
Provider = models.ResourceProvider


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """A broken rule: how many rows break it, and the first of them."""

    rule: Rule
    count: int
    rows: Sequence[dict[str, Any]]


def check(connection: sa.Connection) -> Iterator[Finding]:
    """Yield a finding for each rule that is broken."""
    present = set(sa.inspect(connection).get_table_names())
    for rule in RULES:
        if not {table.name for table in _tables(rule.broken)} <= present:
            continue
        rows = rule.broken.subquery()
        count = connection.scalar(sa.select(sa.func.count()).select_from(rows)) or 0
        if count:
            shown = connection.execute(rule.broken.limit(SHOWN)).mappings()
            yield Finding(rule, count, [dict(row) for row in shown])
    yield from _check_circles(connection)
    yield from _check_content(connection, present)


def repair(connection: sa.Connection, findings: Sequence[Finding]) -> dict[str, int]:
    """Mend what has one right answer; return how many rows were, by rule."""
    mended = {
        found.rule.name: found.rule.repair(connection)
        for found in findings
        if found.rule.repair
    }
    if mended:
        recording.note_everything(connection)
    return mended


def _tables(query: sa.Select[*tuple[Any, ...]]) -> set[sa.Table]:
    from_all = util.find_tables(query, include_joins=True, check_columns=True)
    return {table for table in from_all if isinstance(table, sa.Table)}


def _check_circles(connection: sa.Connection) -> Iterator[Finding]:
    """Yield a finding if parents of providers go round in a circle."""
    circling = tree.list_circling(connection)
    if circling:
        broken = (
            sa.select(Provider.uuid, Provider.name)
            .where(Provider.id.in_(circling[:SHOWN]))
            .order_by(Provider.id)
        )
        rule = Rule("parent-circle", "a provider is below itself", broken)
        rows = [dict(row) for row in connection.execute(broken).mappings()]
        yield Finding(rule, len(circling), rows)


def _check_content(connection: sa.Connection, present: set[str]) -> Iterator[Finding]:
    """Yield a finding if our own tables lack rows that they cannot be without."""
    for table, list_missing in content.CONTENT.rows.items():
        missing = list_missing(connection) if table.name in present else ()
        if missing:
            nothing = sa.select(table).where(sa.false())
            meaning = f"{table.name} lacks rows that it cannot be without"
            rule = Rule(f"rows-of-{table.name}", meaning, nothing, repair=_complete)
            yield Finding(rule, len(missing), [{"table": table.name}])


def _complete(connection: sa.Connection) -> int:
    missing = 0
    for table, list_missing in content.CONTENT.rows.items():
        rows = list_missing(connection)
        if rows:
            connection.execute(sa.insert(table), rows)
        missing += len(rows)
    return missing

"""Finding rows that break rules, and mending those with one right answer."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm

from placement.objects.soundness.rule import RULES, Held, Row, Rule
from placement.objects.transaction import Transaction

# How many rows a repair may remove if the caller gives no number.
HANDFUL = 5


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """A broken rule, with the number of the rows that break it, and the first ones."""

    rule: Rule
    count: int
    rows: Sequence[Row]


class RemovalRefusedError(Exception):
    """A repair would remove more rows than it may. The message says how many."""


def check(
    connection: sa.Connection, most: int | None = None, rules: Iterable[Rule] = RULES
) -> Iterator[Finding]:
    """Yield a finding for each rule that is broken.

    :param most: how many rows are in each finding; None means all
    """
    for rule in _applicable(connection, rules):
        rows = rule.list_broken(connection)
        if rows:
            yield Finding(rule, len(rows), rows[:most])


def repair(tx: Transaction, most_removed: int | None = None) -> dict[str, int]:
    """Mend rows with one right answer; return how many rows were mended, by rule.

    :param most_removed: how many rows may be removed; None means a handful, and no
        allocation of a consumer that keeps others
    :raises RemovalRefusedError: the repairs would remove more
    """
    mended: dict[str, int] = {}
    removed = shared = 0
    for rule in _applicable(tx.connection, RULES):
        rows = rule.list_broken(tx.connection) if rule.can_be_repaired else ()
        if not rows:
            continue
        mended[rule.name] = len(rows)
        if rule.mend:
            rule.mend(tx)
        else:
            removed += len(rows)
            shared += _remove(tx.connection, rule.broken)
    allowed = HANDFUL if most_removed is None else most_removed
    if removed > allowed or (shared and most_removed is None):
        of_them = f", {shared} of them allocations of consumers that keep others"
        raise RemovalRefusedError(
            f"Nothing was mended: {removed} rows would be removed"
            f"{of_them if shared else ''}. Look at them; if they may go, add "
            f"--remove {removed}."
        )
    if mended:
        tx.record_all()
    return mended


def _applicable(connection: sa.Connection, rules: Iterable[Rule]) -> list[Rule]:
    """Return the rules about tables that the database has."""
    present = set(sa.inspect(connection).get_table_names())
    return [each for each in rules if each.needs is None or each.needs in present]


def _remove(connection: sa.Connection, broken: Any) -> int:
    """Remove rows; return how many were allocations of consumers that keep others.

    :param broken: the query for the rows
    """
    [table], condition = broken.get_final_froms(), broken.whereclause
    shared, other = 0, orm.aliased(Held)
    if table is Held.__table__:
        removed = sa.select(Held.id).where(condition)
        keeps = sa.exists(1).where(
            other.consumer_id == Held.consumer_id, other.id.not_in(removed)
        )
        counted = sa.select(sa.func.count(Held.id)).where(condition, keeps)
        shared = connection.scalar(counted) or 0
    connection.execute(sa.delete(table).where(condition))
    return shared

"""Notes of operators and their programs on the cloud: a document of each owner.

The service keeps notes for programs that show the cloud; no decision depends on them.
"""

import enum
import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import sqlalchemy as sa

from placement.db import models
from placement.objects import own_table
from placement.objects.transaction import Transaction

T = TypeVar("T")

_table = models.NOTES
_row = _table.c


class Topic(enum.StrEnum):
    """The topic of a note."""

    NAMES = "names"
    AUDIT = "audit"


def are_kept(connection: sa.Connection) -> bool:
    """Return whether there is a table for notes."""
    return own_table.is_writable(connection, _table)


def load(
    connection: sa.Connection,
    topic: Topic,
    owner: str | None = None,
    *,
    parse: Callable[[str], T] = json.loads,
) -> dict[str, T]:
    """Return notes about a topic, of one owner or of all, by owner and in this order.

    :raises UnusableTable: there is no table for notes
    """
    own_table.check(connection, _table)
    query = sa.select(_row.owner, _row.document).where(_row.kind == topic)
    if owner is not None:
        query = query.where(_row.owner == owner)
    return _load(connection, query.order_by(_row.owner), parse)


def change(
    tx: Transaction,
    topic: Topic,
    owner: str,
    make: Callable[[T | None], Any],
    *,
    parse: Callable[[str], T] = json.loads,
) -> None:
    """Replace the note of an owner with what ``make`` returns for it; None is no note.

    :raises UnusableTable: there is no table for notes
    """
    own_table.check(tx.connection, _table)
    is_it = (_row.kind == topic, _row.owner == owner)
    query = sa.select(_row.owner, _row.document).where(*is_it).with_for_update()
    before = _load(tx.connection, query, parse).get(owner)
    after = make(before)
    if after is None:
        own_table.execute(tx.connection, _table, sa.delete(_table).where(*is_it))
        return
    row = {"kind": topic, "owner": owner, "document": json.dumps(after)}
    if before is None:
        # There was no row to lock: of two requests that insert it, one begins again.
        own_table.execute(tx.connection, _table, sa.insert(_table), row)
    else:
        update = sa.update(_table).where(*is_it).values(document=row["document"])
        own_table.execute(tx.connection, _table, update)


def _load(
    connection: sa.Connection, query: sa.Select[Any], parse: Callable[[str], T]
) -> dict[str, T]:
    rows: Iterable[Any] = own_table.execute(connection, _table, query)
    return {
        each: own_table.parse(_table, each, document, parse) for each, document in rows
    }

"""Watches that what is written is also in the journal, while any test runs.

It looks at each statement that our code executes in this process, whatever the code is:
a request, a command, work in the background, a migration. If a transaction commits
changes of the tables that the journal is about, it must have noted entries of the types
that say so, or a gap. Rows that tests write by themselves do not count: they stand for
other programs, and for damage.
"""

import collections
import functools
import re
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import sqlalchemy as sa

from placement.db import models
from placement.model.entry import EntryType
from placement.objects.journal import recording
from placement.objects.journal.keeping import Keeper
from placement.objects.transaction import Transaction
from placement_foundation.database import engine

GONE = EntryType.PROVIDER_DELETED
# Tables, and the beginnings of the types of entries that say that their rows changed.
# Projects, users, consumer types and aggregates are in no entries but those of what
# refers to them.
ENTRIES_OF = {
    "resource_providers": ("provider.",),
    "inventories": (EntryType.INVENTORY_CHANGED, GONE),
    "resource_provider_traits": (EntryType.TRAITS_CHANGED, GONE),
    "resource_provider_aggregates": (EntryType.AGGREGATES_CHANGED, GONE),
    "allocations": (EntryType.ALLOCATIONS_CHANGED,),
    "consumers": (EntryType.ALLOCATIONS_CHANGED, EntryType.CONSUMER_CHANGED),
    "traits": ("trait.",),
    "resource_classes": ("resource_class.",),
    # A lease goes with the allocations of its consumer.
    "leases": ("lease.", EntryType.ALLOCATIONS_CHANGED),
}
# Functions that change rows without an entry, each with the reason.
EXCUSED = {
    "placement.objects.leasing._forget_orphans": (
        "another service has deleted the consumers: its writes are a gap"
    ),
}

ROOT = Path(__file__).parents[1]
_TABLE = r"[\"`]?(\w+)[\"`]?"
_WRITES = re.compile(rf"(?:INSERT INTO|DELETE FROM|UPDATE) {_TABLE}")
# What changes with each write of a row, or only says which row it is.
_ASIDE = {"id", "generation", "created_at", "updated_at"}
_VALUE = r"(?:coalesce\([^()]*\)|[^,=])*"
_SET_ASIDE = rf"[`\"]?(?:{'|'.join(sorted(_ASIDE))})[`\"]? ?={_VALUE}"
_ONLY_ASIDE = re.compile(rf"UPDATE {_TABLE} SET {_SET_ASIDE}(?:, {_SET_ASIDE})* WHERE")


class Change(NamedTuple):
    """A table that was written, and the functions that did it, the innermost last."""

    table: str
    functions: tuple[str, ...]


class Witness:
    """What was committed without being in the journal."""

    def __init__(self) -> None:
        self._changes: weakref.WeakKeyDictionary[sa.Connection, set[Change]] = (
            weakref.WeakKeyDictionary()
        )
        self._recorded: weakref.WeakKeyDictionary[sa.Connection, set[str]] = (
            weakref.WeakKeyDictionary()
        )
        self.missing: list[str] = []

    def hear(self, tx: Transaction) -> None:
        """Note the types of the entries that a transaction records."""
        self._recorded[tx.connection] = {kind for kind, _ in tx.entries}

    def note(
        self, connection: sa.Connection, cursor: Any, statement: str, *unused: Any
    ) -> None:
        """Note what a statement has written."""
        tables = ENTRIES_OF.keys() & _WRITES.findall(statement)
        if (aside := _ONLY_ASIDE.match(statement)) is not None:
            tables -= {aside[1]}
        if tables and cursor.rowcount and (functions := _list_functions()):
            changes = self._changes.setdefault(connection, set())
            changes.update(Change(table, functions) for table in tables)

    def forget(self, connection: sa.Connection) -> None:
        """Forget what is rolled back."""
        self._changes.pop(connection, None)

    def compare(self, connection: sa.Connection) -> None:
        """Compare what is about to be committed with what the journal gets."""
        for change in sorted(self._changes.pop(connection, ())):
            if (
                EXCUSED.keys().isdisjoint(change.functions)
                and not self._is_recorded(connection, change.table)
                and _is_changed(connection, change.table)
            ):
                self.missing.append(
                    f"{' > '.join(change.functions[-4:])} changed {change.table}, and "
                    f"no entry says so: {' or '.join(ENTRIES_OF[change.table])}"
                )

    def _is_recorded(self, connection: sa.Connection, table: str) -> bool:
        """Return whether the transaction has recorded entries that say so."""
        return any(
            kind == EntryType.GAP or kind.startswith(ENTRIES_OF[table])
            for kind in self._recorded.get(connection, ())
        )


def _is_changed(connection: sa.Connection, table: str) -> bool:
    """Return whether a transaction leaves a table with other content.

    The same may be written once more. What was there before is what others still see;
    they may commit at the same time, so they are asked twice.
    """
    if engine.is_in_memory(connection.engine.url):
        return True
    elsewhere = sa.create_engine(connection.engine.url, poolclass=sa.NullPool)
    with elsewhere.connect() as other:
        before = _load(other, table)
        other.rollback()
        here = _load(connection, table)
        return here not in (before, _load(other, table))


def _load(connection: sa.Connection, name: str) -> collections.Counter[Any]:
    """Return the rows of a table, without what says nothing; no listener hears it."""
    table = {**models.Base.metadata.tables, **models.OWN.tables}[name]
    columns = [column for column in table.columns if column.name not in _ASIDE]
    rows = sa.select(*columns)
    if name == models.Consumer.__tablename__:
        # The API knows those with allocations only.
        uses = models.Allocation.consumer_id == models.Consumer.uuid
        rows = rows.where(sa.exists(models.Allocation.id).where(uses))
    query = str(rows.compile(dialect=connection.dialect))
    cursor = connection.connection.cursor()
    cursor.execute(query)
    return collections.Counter(map(tuple, cursor.fetchall()))


def _list_functions() -> tuple[str, ...]:
    """Return which functions of ours execute a statement; none if it is a test's."""
    functions: list[str] = []
    frame = sys._getframe()
    while frame := frame.f_back:  # type: ignore[assignment]
        module = _module_of(frame.f_code.co_filename)
        if module == __name__:
            continue
        if module.startswith("tests."):
            break
        if module:
            functions.append(f"{module}.{frame.f_code.co_qualname}")
    return tuple(reversed(functions))


@functools.cache
def _module_of(path: str) -> str:
    """Return the name of a module of tests or of the service, "" for any other."""
    for room in ("tests", "placement"):
        if Path(path).is_relative_to(ROOT / room):
            return ".".join(Path(path).relative_to(ROOT).with_suffix("").parts)
    return ""


@contextmanager
def watching() -> Iterator[Witness]:
    """Watch all databases that this process uses in the block."""
    witness = Witness()
    listeners: dict[str, Callable[..., None]] = {
        "after_cursor_execute": witness.note,
        "rollback": witness.forget,
        "commit": witness.compare,
    }
    for name, listener in listeners.items():
        sa.event.listen(sa.Engine, name, listener)
    store = recording.store

    def hear_and_store(tx: Transaction, keeper: Keeper | None) -> None:
        witness.hear(tx)
        store(tx, keeper)

    try:
        with mock.patch.object(recording, "store", hear_and_store):
            yield witness
    finally:
        for name, listener in listeners.items():
            sa.event.remove(sa.Engine, name, listener)

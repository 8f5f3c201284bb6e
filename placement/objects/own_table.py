"""Whether the tables that we add to the shared ones can be used.

Each may be missing, since ``placement-manage db sync`` has not been run, or the
database user may have rights on the shared tables only. Then the service works without
the table, and logs that once. A table that can be used is remembered, until a statement
about it fails; a table that cannot be used is tried again in the next transaction.
"""

import enum
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_log import log

from placement import errors
from placement.db import models
from placement_foundation.database import trouble

LOG = log.getLogger(__name__)

T = TypeVar("T")


class Fault(enum.Enum):
    """Why a table cannot be used, or only for reading."""

    MISSING = "is missing: run placement-manage db sync"
    UNREADABLE = "may not be read by the database user"
    UNWRITABLE = "may not be written by the database user"

    def of(self, table: sa.Table) -> str:
        """Return the sentence that a table has this fault."""
        return f"The table {table.name} {self.value}."


# The faults of tables, by name, for each engine: its dialect belongs to it alone and to
# all that are derived from it. None means that a table can be used.
_known: weakref.WeakKeyDictionary[sa.Dialect, dict[str, Fault | None]] = (
    weakref.WeakKeyDictionary()
)


def is_writable(connection: sa.Connection, table: sa.Table) -> bool:
    """Return whether rows of a table of ours can be read, added, changed and removed.

    A transaction that only reads may call this, too.
    """
    return find_fault(connection, table) is None


def check(connection: sa.Connection, table: sa.Table) -> None:
    """Check that rows of a table of ours can be read, added, changed and removed.

    :raises UnusableTable: the table is missing, or rights are
    """
    fault = find_fault(connection, table)
    if fault:
        raise errors.UnusableTable(fault.of(table))


def parse(
    table: sa.Table, key: str, text: str, parse_document: Callable[[str], T]
) -> T:
    """Return the value in the document of a row.

    :param key: the name of the row in the error
    :raises UnusableTable: the row is damaged
    """
    try:
        return parse_document(text)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as exc:
        raise errors.UnusableTable(
            f"The table {table.name} is damaged: the document of {key} cannot be read. "
            "placement-manage check lists what is."
        ) from exc


def find_fault(connection: sa.Connection, table: sa.Table) -> Fault | None:
    """Return why a table of ours cannot be used, or only for reading.

    This never makes the transaction fail.
    """
    faults = _known.setdefault(connection.dialect, {})
    if faults.get(table.name, Fault.MISSING) is None:
        return None
    fault = _probe(connection, table)
    if fault and faults.get(table.name) is not fault:
        LOG.warning(
            "the table %s %s; what needs it is switched off", table.name, fault.value
        )
    faults[table.name] = fault
    return fault


def list_faults(
    connection: sa.Connection, tables: Iterable[sa.Table] = models.OWN.sorted_tables
) -> dict[str, Fault]:
    """Return why tables cannot be used, or only for reading, each in a sentence."""
    faults = {table: _probe(connection, table) for table in tables}
    return {fault.of(table): fault for table, fault in faults.items() if fault}


def execute(
    connection: sa.Connection,
    table: sa.Table,
    statement: sa.Executable,
    parameters: Any = None,
) -> sa.CursorResult[Any]:
    """Execute a statement about a table that could be used, according to this module.

    If the table or the rights have gone since, the transaction begins again, and tries
    the table again.
    """
    try:
        return connection.execute(statement, parameters)
    except (db_exc.DBError, sa.exc.DBAPIError) as exc:
        _forget(connection, table, exc)
        raise


def _forget(connection: sa.Connection, table: sa.Table, exc: Exception) -> None:
    """Forget which tables can be used, if one cannot be any more.

    :raises LostRaceError: a statement has failed for this reason
    """
    if not (trouble.is_missing_table(exc) or trouble.is_denied(exc)):
        return
    faults = _known.get(connection.dialect, {})
    _known[connection.dialect] = {name: each for name, each in faults.items() if each}
    raise trouble.LostRaceError(f"the table {table.name} has gone") from exc


def _probe(connection: sa.Connection, table: sa.Table) -> Fault | None:
    if connection.dialect.name == "postgresql":
        return _probe_postgresql(connection, table)
    if connection.dialect.name == "sqlite":
        has_table = sa.inspect(connection).has_table(table.name)
        return None if has_table else Fault.MISSING
    return _probe_mysql(connection, table)


# A failed statement would end the transaction, so this queries the catalogue. It does
# not find a table in a schema that the user may not use. Keys from a sequence need a
# right on the sequence as well.
_RIGHTS = sa.text("""
    SELECT oid IS NOT NULL, has_table_privilege(oid, 'SELECT'),
      has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE')
      AND has_table_privilege(oid, 'DELETE') AND NOT EXISTS (
        SELECT 1 FROM pg_depend d JOIN pg_class s ON s.oid = d.objid
        WHERE d.classid = 'pg_class'::regclass AND d.refobjid = found.oid
        AND d.deptype = 'a' AND CASE WHEN s.relkind = 'S'
          THEN NOT has_sequence_privilege(s.oid, 'USAGE') ELSE false END)
    FROM (SELECT CAST(to_regclass(:name) AS oid) AS oid) AS found
""")


def _probe_postgresql(connection: sa.Connection, table: sa.Table) -> Fault | None:
    quoted = connection.dialect.identifier_preparer.format_table(table)
    exists, reads, writes = connection.execute(_RIGHTS, {"name": quoted}).one()
    if not exists:
        return Fault.MISSING
    if not reads:
        return Fault.UNREADABLE
    return None if writes else Fault.UNWRITABLE


def _probe_mysql(connection: sa.Connection, table: sa.Table) -> Fault | None:
    """Try statements that change nothing: rights may also come from roles."""
    key, nothing = next(iter(table.primary_key)), sa.false()
    columns = [column.name for column in table.columns]
    rows = sa.select(table).where(nothing)
    trials: tuple[tuple[sa.Executable, Fault], ...] = (
        (sa.select(key).limit(0), Fault.UNREADABLE),
        (sa.insert(table).from_select(columns, rows), Fault.UNWRITABLE),
        (sa.update(table).where(nothing).values({key.name: key}), Fault.UNWRITABLE),
        (sa.delete(table).where(nothing), Fault.UNWRITABLE),
    )
    for statement, fault in trials:
        try:
            connection.execute(statement)
        except (db_exc.DBError, sa.exc.DBAPIError) as exc:
            if trouble.is_missing_table(exc):
                return Fault.MISSING
            if trouble.is_denied(exc):
                return fault
            # The database checks rights first: the user has them.
            if not trouble.is_read_only(exc):
                raise
    return None

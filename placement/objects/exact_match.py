"""Finding rows by exactly a given string.

MariaDB and MySQL may consider strings equal that differ in case or trailing spaces, so
strings that the database returns are compared again here.
"""

import dataclasses
import functools
import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy import orm

from placement.objects.transaction import Transaction
from placement_foundation.database import storage

NONE: Mapping[str, int] = types.MappingProxyType({})


def is_searchable(string: str) -> bool:
    """Return whether a string can be searched for: PostgreSQL refuses a NUL."""
    return "\0" not in string


def searchable(connection: sa.Connection, strings: Iterable[str]) -> set[str]:
    """Return the strings that a database may have: PostgreSQL has none with NUL."""
    if connection.dialect.name != "postgresql":
        return set(strings)
    return set(filter(is_searchable, strings))


def find_by_string(
    connection: sa.Connection,
    query: sa.Select[*tuple[Any, ...]],
    column: orm.InstrumentedAttribute[str],
    string: str,
) -> Any:
    """Return the row that a query finds by a string, None if there is none.

    :param query: a constant, since the query made of it is remembered
    :param column: one that the query selects
    """
    if not is_searchable(string):
        return None
    rows = connection.execute(_query_by_string(query, column), {"string": string})
    return next((row for row in rows if getattr(row, column.key) == string), None)


@functools.lru_cache
def _query_by_string(
    query: sa.Select[*tuple[Any, ...]], column: orm.InstrumentedAttribute[str]
) -> sa.Select[*tuple[Any, ...]]:
    return query.where(column == sa.bindparam("string"))


def lock_by_string(
    tx: Transaction,
    columns: sa.Select[*tuple[Any, ...]],
    id_column: orm.InstrumentedAttribute[int],
    string_column: orm.InstrumentedAttribute[str],
    strings: Iterable[str],
    ids: Mapping[str, int] = NONE,
) -> dict[str, Any]:
    """Return rows keyed by their string, locked until this transaction ends.

    They are locked in the order of their ids, and read after that.

    :param columns: the columns to read, including that of the string
    :param ids: the known ids of rows, by string
    """
    wanted = {string for string in strings if is_searchable(string)}
    column: orm.InstrumentedAttribute[Any] = string_column
    keys: Collection[Any] = wanted
    if tx.dialect in ("mysql", "mariadb"):
        # Searching by string would lock rows in another order.
        column = id_column
        unknown = ids_by_string(
            tx.connection, id_column, string_column, wanted - ids.keys()
        )
        keys = [*unknown.values(), *(ids[string] for string in wanted & ids.keys())]
    locked = {}
    for chunk in storage.chunks(sorted(keys)):
        for row in storage.lock_rows(
            tx.connection, columns, id_column, chunk, by=column
        ):
            string = getattr(row, string_column.key)
            if string in wanted:
                locked[string] = row
    return locked


# A primary key, and a string.
_Columns: TypeAlias = tuple[
    orm.InstrumentedAttribute[int], orm.InstrumentedAttribute[str]
]


@dataclasses.dataclass(frozen=True, slots=True)
class WantedStrings:
    """Strings in a column, for which the ids of rows are wanted."""

    id_column: orm.InstrumentedAttribute[int]
    string_column: orm.InstrumentedAttribute[str]
    strings: Collection[str]


def ids_of_all(
    connection: sa.Connection, every: Sequence[WantedStrings]
) -> list[dict[str, int]]:
    """Return the ids of the rows of several tables, each like ``ids_by_string``.

    If the strings are few, one statement finds them all.
    """
    wanted = [searchable(connection, each.strings) for each in every]
    if not any(wanted):
        return [{} for _ in every]
    if sum(map(len, wanted)) > storage.CHUNK:
        return [
            ids_by_string(connection, each.id_column, each.string_column, each.strings)
            for each in every
        ]
    ids: list[dict[str, int]] = [{} for _ in every]
    some = [number for number, strings in enumerate(wanted) if strings]
    columns = [
        (every[number].id_column, every[number].string_column) for number in some
    ]
    strings = {
        f"strings{place}": sorted(wanted[number]) for place, number in enumerate(some)
    }
    for place, row_id, string in connection.execute(_union(tuple(columns)), strings):
        number = some[place]
        if string in wanted[number]:
            ids[number][string] = row_id
    return ids


@functools.cache
def _union(columns: tuple[_Columns, ...]) -> sa.CompoundSelect[*tuple[Any, ...]]:
    """Return the query for ids and strings of several tables, with the table's place.

    Its parameters are the strings, as ``strings0`` and so on.
    """
    return sa.union_all(
        *(
            sa.select(
                sa.literal_column(str(place)),
                id_column,
                # Tables made by another service may have other character sets.
                sa.cast(string_column, sa.String(255)),
            ).where(string_column.in_(sa.bindparam(f"strings{place}", expanding=True)))
            for place, (id_column, string_column) in enumerate(columns)
        )
    )


def ids_by_string(
    connection: sa.Connection,
    id_column: orm.InstrumentedAttribute[int],
    string_column: orm.InstrumentedAttribute[Any],
    strings: Iterable[str],
) -> dict[str, int]:
    """Return the ids of rows keyed by their string, one of those given, in id order."""
    wanted = searchable(connection, strings)
    ids: dict[str, int] = {}
    query = _ids_query(id_column, string_column)
    for chunk in storage.chunks(sorted(wanted)):
        rows = connection.execute(query, {"strings": chunk})
        ids.update({string: row_id for string, row_id in rows if string in wanted})
    return ids


@functools.cache
def _ids_query(
    id_column: orm.InstrumentedAttribute[int],
    string_column: orm.InstrumentedAttribute[Any],
) -> sa.Select[*tuple[Any, ...]]:
    """Return the query for strings and ids; ``strings`` is its parameter."""
    listed = string_column.in_(sa.bindparam("strings", expanding=True))
    return sa.select(string_column, id_column).where(listed).order_by(id_column)

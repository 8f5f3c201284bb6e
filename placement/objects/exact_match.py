"""Finding rows by exactly a given string.

MariaDB and MySQL may consider strings equal that differ in case or trailing spaces, so
strings that the database returns are compared again here.
"""

import functools
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm

from placement_foundation.database import storage


def is_searchable(string: str) -> bool:
    """Return whether a string can be searched for: PostgreSQL refuses a NUL."""
    return "\0" not in string


def searchable(connection: sa.Connection, strings: Iterable[str]) -> set[str]:
    """Return the strings that a database may have: PostgreSQL has none with NUL."""
    if connection.dialect.name != "postgresql":
        return set(strings)
    return set(filter(is_searchable, strings))


def ids_of_all(
    connection: sa.Connection,
    wanted: Sequence[tuple[orm.InstrumentedAttribute[Any], Collection[str]]],
) -> list[dict[str, int]]:
    """Return the ids of the rows of several tables, each like ``ids_by_string``.

    If the strings are few, one statement finds them all.

    :param wanted: columns, each with strings
    """
    sought = [searchable(connection, strings) for _, strings in wanted]
    if sum(map(len, sought)) > storage.CHUNK:
        return [ids_by_string(connection, *each) for each in wanted]
    ids: list[dict[str, int]] = [{} for _ in wanted]
    places = [place for place, strings in enumerate(sought) if strings]
    if places:
        query = _union(tuple((place, wanted[place][0]) for place in places))
        parameters = {f"strings{place}": sorted(sought[place]) for place in places}
        for place, row_id, string in connection.execute(query, parameters):
            if string in sought[place]:
                ids[place][string] = row_id
    return ids


@functools.cache
def _union(
    columns: tuple[tuple[int, orm.InstrumentedAttribute[Any]], ...],
) -> sa.CompoundSelect[*tuple[Any, ...]]:
    """Return the query for ids and strings of several tables, with the table's place.

    Its parameters are the strings, as ``strings0`` and so on.
    """
    return sa.union_all(
        *(
            sa.select(
                sa.literal_column(str(place)),
                column.class_.id,
                # Tables made by another service may have other character sets.
                sa.cast(column, sa.String(255)),
            ).where(column.in_(sa.bindparam(f"strings{place}", expanding=True)))
            for place, column in columns
        )
    )


def ids_by_string(
    connection: sa.Connection,
    column: orm.InstrumentedAttribute[Any],
    strings: Iterable[str],
) -> dict[str, int]:
    """Return the ids of rows keyed by their string, one of those given, in id order.

    :param column: the column with the strings
    """
    wanted = searchable(connection, strings)
    rows = storage.select_each(
        connection, _ids_query(column), "strings", sorted(wanted)
    )
    return {string: row_id for string, row_id in rows if string in wanted}


@functools.cache
def _ids_query(
    column: orm.InstrumentedAttribute[Any],
) -> sa.Select[*tuple[Any, ...]]:
    """Return the query for strings and ids; ``strings`` is its parameter."""
    listed = column.in_(sa.bindparam("strings", expanding=True))
    return sa.select(column, column.class_.id).where(listed).order_by(column.class_.id)

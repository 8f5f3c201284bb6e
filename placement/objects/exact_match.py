"""Finding rows by exactly a given string.

MariaDB and MySQL may consider strings equal that differ in case or trailing spaces, so
strings that the database returns are compared again here.
"""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm

from placement_foundation.database import storage


def is_searchable(string: str) -> bool:
    """Return whether a string can be searched for: PostgreSQL refuses a NUL."""
    return "\0" not in string


def searchable(strings: Iterable[str]) -> set[str]:
    """Return those of some strings that can be searched for."""
    return set(filter(is_searchable, strings))


def ids_by_string(
    connection: sa.Connection,
    column: orm.InstrumentedAttribute[Any],
    strings: Iterable[str],
) -> dict[str, int]:
    """Return the ids of rows keyed by their string, one of those given.

    :param column: the column with the strings
    """
    [ids] = ids_of_all(connection, [(column, strings)])
    return ids


def insert_missing(
    connection: sa.Connection,
    column: orm.InstrumentedAttribute[Any],
    strings: Iterable[str],
) -> dict[str, int]:
    """Insert the rows that are missing, and return the ids of all by their string.

    Strings that the database considers equal to another one are left out.

    :param column: the column with the strings; the others have defaults
    """
    missing = sorted(strings)
    for chunk in storage.chunks(missing):
        rows = [{column.key: string} for string in chunk]
        storage.insert_missing(connection, column.parent.class_, rows)
    return ids_by_string(connection, column, missing)


def ids_of_all(
    connection: sa.Connection,
    wanted: Sequence[tuple[orm.InstrumentedAttribute[Any], Iterable[str]]],
) -> list[dict[str, int]]:
    """Return the ids of the rows of several tables, each like ``ids_by_string``.

    If the strings are few, one statement finds them all.

    :param wanted: columns, each with strings
    """
    sought = [searchable(strings) for _, strings in wanted]
    ids: list[dict[str, int]] = [{} for _ in wanted]
    pairs = [
        (place, string)
        for place, strings in enumerate(sought)
        for string in sorted(strings)
    ]
    for chunk in storage.chunks(pairs):
        listed: dict[int, list[str]] = {}
        for place, string in chunk:
            listed.setdefault(place, []).append(string)
        query = _union(tuple((place, wanted[place][0]) for place in listed))
        parameters = {f"strings{place}": some for place, some in listed.items()}
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

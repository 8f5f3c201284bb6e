"""Finding rows by exactly a given string.

MariaDB and MySQL may consider strings equal that differ in case or trailing spaces, so
what the database finds is compared again here.
"""

import dataclasses
import functools
import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy import orm

from placement_foundation.database import storage

NONE: Mapping[str, int] = types.MappingProxyType({})


def is_searchable(text: str) -> bool:
    """Return whether a string can be searched for: PostgreSQL refuses a NUL."""
    return "\0" not in text


def find_by_text(
    connection: sa.Connection,
    query: sa.Select[*tuple[Any, ...]],
    column: orm.InstrumentedAttribute[str],
    text: str,
) -> Any:
    """Return the row that a query finds by a string, None if there is none.

    :param query: a constant, since the query made of it is remembered
    :param column: one that the query selects
    """
    if not is_searchable(text):
        return None
    rows = connection.execute(_query_by_text(query, column), {"text": text})
    return next((row for row in rows if getattr(row, column.key) == text), None)


@functools.lru_cache
def _query_by_text(
    query: sa.Select[*tuple[Any, ...]], column: orm.InstrumentedAttribute[str]
) -> sa.Select[*tuple[Any, ...]]:
    return query.where(column == sa.bindparam("text"))


def lock_by_text(
    connection: sa.Connection,
    columns: sa.Select[*tuple[Any, ...]],
    id_column: orm.InstrumentedAttribute[int],
    text_column: orm.InstrumentedAttribute[str],
    texts: Iterable[str],
    ids: Mapping[str, int] = NONE,
) -> dict[str, Any]:
    """Return rows by text, locked until this transaction ends.

    They are locked in the order of their ids, and read after that.

    :param columns: the columns to read, including that of the text
    :param ids: those that are known of the rows, by text
    """
    wanted = {text for text in texts if is_searchable(text)}
    column: orm.InstrumentedAttribute[Any] = text_column
    keys: Collection[Any] = wanted
    if connection.dialect.name in ("mysql", "mariadb"):
        # Searching by text would lock rows in another order.
        column = id_column
        unknown = ids_by_text(connection, id_column, text_column, wanted - ids.keys())
        keys = [*unknown.values(), *(ids[text] for text in wanted & ids.keys())]
    locked = {}
    for chunk in storage.chunks(sorted(keys)):
        for row in storage.lock_rows(connection, columns, id_column, chunk, by=column):
            text = getattr(row, text_column.key)
            if text in wanted:
                locked[text] = row
    return locked


# A primary key, and a string.
_Columns: TypeAlias = tuple[
    orm.InstrumentedAttribute[int], orm.InstrumentedAttribute[str]
]


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """Texts in a column, for which the ids of rows are wanted."""

    id_column: orm.InstrumentedAttribute[int]
    text_column: orm.InstrumentedAttribute[str]
    texts: Collection[str]


def ids_by_texts(
    connection: sa.Connection, every: Sequence[Wanted]
) -> list[dict[str, int]]:
    """Return the ids of the rows of several tables by text, each like ``ids_by_text``.

    If the texts are few, one statement finds them all.
    """
    if not any(each.texts for each in every):
        return [{} for _ in every]
    if sum(len(each.texts) for each in every) > storage.CHUNK:
        return [
            ids_by_text(connection, each.id_column, each.text_column, each.texts)
            for each in every
        ]
    found: list[dict[str, int]] = [{} for _ in every]
    wanted = [set(filter(is_searchable, each.texts)) for each in every]
    some = [number for number, texts in enumerate(wanted) if texts]
    columns = [(every[number].id_column, every[number].text_column) for number in some]
    texts = {
        f"texts{place}": sorted(wanted[number]) for place, number in enumerate(some)
    }
    for place, row_id, text in connection.execute(_union(tuple(columns)), texts):
        number = some[place]
        if text in wanted[number]:
            found[number][text] = row_id
    return found


@functools.cache
def _union(columns: tuple[_Columns, ...]) -> sa.CompoundSelect[*tuple[Any, ...]]:
    """Return the query for ids and texts of several tables, with the table's place.

    Its parameters are the texts, as ``texts0`` and so on.
    """
    return sa.union_all(
        *(
            sa.select(
                sa.literal_column(str(place)),
                id_column,
                # Tables made by another service may have other character sets.
                sa.cast(text_column, sa.String(255)),
            ).where(text_column.in_(sa.bindparam(f"texts{place}", expanding=True)))
            for place, (id_column, text_column) in enumerate(columns)
        )
    )


def ids_by_text(
    connection: sa.Connection,
    id_column: orm.InstrumentedAttribute[int],
    text_column: orm.InstrumentedAttribute[Any],
    texts: Iterable[str],
) -> dict[str, int]:
    """Return the ids of rows keyed by their text, one of those given, in id order."""
    wanted = {text for text in texts if is_searchable(text)}
    found: dict[str, int] = {}
    query = _ids_query(id_column, text_column)
    for chunk in storage.chunks(sorted(wanted)):
        rows = connection.execute(query, {"texts": chunk})
        found.update({text: row_id for text, row_id in rows if text in wanted})
    return found


@functools.cache
def _ids_query(
    id_column: orm.InstrumentedAttribute[int],
    text_column: orm.InstrumentedAttribute[Any],
) -> sa.Select[*tuple[Any, ...]]:
    """Return the query for texts and ids; ``texts`` is its parameter."""
    listed = text_column.in_(sa.bindparam("texts", expanding=True))
    return sa.select(text_column, id_column).where(listed).order_by(id_column)

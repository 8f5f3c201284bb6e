"""Finding rows by a text that is theirs to the letter.

MariaDB and MySQL take texts for equal that differ in case or trailing blanks, so what
the database finds is compared once more here.
"""

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.orm import Session

from placement_foundation import storage


def is_searchable(text: str) -> bool:
    """Tell whether a text may be looked for: PostgreSQL refuses a NUL."""
    return "\0" not in text


def has_text(
    session: Session, column: orm.InstrumentedAttribute[Any], text: str
) -> sa.ColumnElement[bool]:
    """Return the condition that a column has a text, which may contain a NUL."""
    if is_searchable(text) or session.get_bind().dialect.name != "postgresql":
        return column == text
    return sa.false()


def find_by_text(
    session: Session,
    query: sa.Select[*tuple[Any, ...]],
    column: orm.InstrumentedAttribute[str],
    text: str,
) -> Any:
    """Return the row that a query finds by a text, None if there is none.

    :param column: one that the query selects
    """
    if not is_searchable(text):
        return None
    rows = session.connection().execute(query.where(column == text))
    return next((row for row in rows if getattr(row, column.key) == text), None)


def ids_by_text(
    session: Session,
    id_column: orm.InstrumentedAttribute[int],
    text_column: orm.InstrumentedAttribute[Any],
    texts: Iterable[str],
) -> dict[str, int]:
    """Return the ids of the rows that have one of the texts, by text, in id order."""
    wanted = {text for text in texts if is_searchable(text)}
    found: dict[str, int] = {}
    for chunk in storage.chunks(sorted(wanted)):
        query = sa.select(text_column, id_column).where(text_column.in_(chunk))
        rows = session.connection().execute(query.order_by(id_column))
        found.update({text: row_id for text, row_id in rows if text in wanted})
    return found

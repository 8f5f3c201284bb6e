"""Which SQL statements are executed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from placement_foundation.storage import Database


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """Give the list of the statements that are executed within, by their first words.

    One that is executed for several rows at once is listed once.
    """
    executed: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *unused: Any) -> None:
        executed.append(" ".join(statement.split()[:3]))

    sa.event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield executed
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", note)

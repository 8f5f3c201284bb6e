"""Records the SQL statements that are executed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from placement_foundation.database.storage import Database


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """Give a list of the statements executed in the block, by their first words.

    A statement that is executed for several rows at once is listed once.
    """
    executed: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *unused: Any) -> None:
        executed.append(" ".join(statement.split()[:3]))

    sa.event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield executed
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", note)

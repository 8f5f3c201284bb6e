"""Records the SQL statements that are executed."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from placement_foundation.database.storage import Database


@contextmanager
def statements(
    database: Database, *, of_all_threads: bool = False
) -> Iterator[list[str]]:
    """Give a list of the statements executed in the block, by their first words.

    Those of other threads count only on request: what an earlier test began may go on
    beside it. A statement that is executed for several rows at once is listed once.
    """
    executed: list[str] = []
    here = threading.get_ident()

    def note(connection: Any, cursor: Any, statement: str, *unused: Any) -> None:
        if of_all_threads or threading.get_ident() == here:
            executed.append(" ".join(statement.split()[:3]))

    sa.event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield executed
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", note)

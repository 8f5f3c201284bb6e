"""Reading so many rows that only some of them should be in memory at a time."""

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from placement_foundation.database import storage

# How many rows are in memory at a time.
ROWS = 5_000


def stream(
    connection: sa.Connection, query: sa.Select[*tuple[Any, ...]]
) -> Iterator[Sequence[Any]]:
    """Yield the rows of a query, some at a time.

    The query is sent when the first one is read. All are to be read before the
    connection is used again: MariaDB would drop the rest of them.
    """
    rows = connection.execute(query, execution_options={"yield_per": ROWS})
    storage.before_end(connection, rows.close)
    yield from rows

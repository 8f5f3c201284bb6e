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
    """Return the rows of a query, some at a time.

    They are to be read to the end before the connection is used again.
    """
    rows = connection.execute(query, execution_options={"yield_per": ROWS})
    storage.before_end(connection, rows.close)
    return iter(rows)

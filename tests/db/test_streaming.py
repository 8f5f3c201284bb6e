"""Rows of which only some are in memory at a time."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from placement_foundation import errors
from placement_foundation.database import streaming
from placement_foundation.database.storage import Database
from tests import backends

MANY = 3 * streaming.ROWS + 7
# For what may wait for ever, in seconds.
PATIENCE = 30


def numbers(connection: sa.Connection, most: int = MANY) -> sa.Select[tuple[int]]:
    """Return a query for the numbers from 1 on, in their order."""
    first = sa.select(sa.literal(1).label("number")).cte(recursive=True)
    every = first.union_all(sa.select(first.c.number + 1).where(first.c.number < most))
    if connection.dialect.name in ("mysql", "mariadb"):
        is_mariadb = getattr(connection.dialect, "is_mariadb", False)
        limit = "max_recursive_iterations" if is_mariadb else "cte_max_recursion_depth"
        connection.execute(sa.text(f"SET {limit} = {most}"))
    return sa.select(every.c.number).order_by(every.c.number)


def test_all_rows_come_in_their_order(alone: Database) -> None:
    def work(connection: sa.Connection) -> list[int]:
        rows = streaming.stream(connection, numbers(connection))
        return [number for (number,) in rows]

    assert alone.read(work) == [*range(1, MANY + 1)]


def test_a_value_that_is_not_there_is_none(alone: Database) -> None:
    nothing: sa.Select[*tuple[Any, ...]] = sa.select(
        sa.null(), sa.literal("100 % of it")
    )

    def work(connection: sa.Connection) -> list[tuple[object, ...]]:
        return [tuple(row) for row in streaming.stream(connection, nothing)]

    assert alone.read(work) == [(None, "100 % of it")]


def test_the_connection_is_of_use_afterwards(alone: Database) -> None:
    def work(connection: sa.Connection) -> int | None:
        [*streaming.stream(connection, numbers(connection))]
        return connection.scalar(sa.select(sa.literal(7)))

    assert alone.read(work) == 7
    assert (
        alone.read(lambda connection: connection.scalar(sa.select(sa.literal(8)))) == 8
    )


def inline(connection: sa.Connection) -> None:
    for _ in streaming.stream(connection, numbers(connection)):
        raise errors.BadRequest("This row is wrong.")


def held(connection: sa.Connection) -> None:
    rows = streaming.stream(connection, numbers(connection))
    next(rows)
    raise errors.BadRequest(f"A row of {rows} is wrong.")


def comprehended(connection: sa.Connection) -> None:
    def refuse(row: Sequence[Any]) -> int:
        raise errors.BadRequest("This row is wrong.")

    [refuse(row) for row in streaming.stream(connection, numbers(connection))]


@pytest.mark.parametrize("work", [inline, held, comprehended])
@pytest.mark.parametrize("run", [Database.read, Database.write])
def test_a_failure_over_a_row_ends_the_transaction(
    alone: Database,
    run: Callable[[Database, object], object],
    work: Callable[[sa.Connection], None],
) -> None:
    seen: list[BaseException | None] = []

    def fail() -> None:
        for _ in range(3):
            with pytest.raises(errors.BadRequest) as caught:
                run(alone, work)
            # The traceback refers to the rows as long as it is kept.
            seen.append(caught.value)
            assert alone.read(lambda other: other.scalar(sa.select(sa.literal(8)))) == 8
        seen.append(None)

    thread = threading.Thread(target=fail, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert len(seen) == 4


def test_rows_that_are_not_read_end_with_the_transaction(alone: Database) -> None:
    left: list[Iterator[Sequence[Any]]] = []

    def work(connection: sa.Connection) -> None:
        left.append(streaming.stream(connection, numbers(connection)))
        next(left[0])

    thread = threading.Thread(target=alone.read, args=[work], daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.mark.skipif(backends.KIND != "postgresql", reason="of PostgreSQL")
def test_a_lost_connection_is_replaced_by_another_one(
    alone: Database, database: Database
) -> None:
    attempts: list[int] = []

    def work(connection: sa.Connection) -> int:
        attempts.append(backends.session_of(connection))
        count = 0
        # More than fits into the buffers between the server and us.
        for _ in streaming.stream(connection, numbers(connection, 1_000_000)):
            count += 1
            if count == 1 and len(attempts) == 1:
                backends.kill(database, attempts[0])
        return count

    assert alone.read(work) == 1_000_000
    assert len(attempts) == 2

"""Rows that are read while the database goes on sending them."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from placement_foundation import errors, option
from placement_foundation.database import storage, streaming
from placement_foundation.database.storage import Database
from tests import backends

MANY = 3 * streaming.ROWS + 7


def numbers(connection: sa.Connection, most: int = MANY) -> sa.Select[tuple[int]]:
    """Return a query for the numbers from 1 on, in their order."""
    first = sa.select(sa.literal(1).label("number")).cte(recursive=True)
    every = first.union_all(sa.select(first.c.number + 1).where(first.c.number < most))
    if connection.dialect.name in ("mysql", "mariadb"):
        connection.execute(sa.text(f"SET max_recursive_iterations = {most}"))
    return sa.select(every.c.number).order_by(every.c.number)


@pytest.fixture
def alone(database: Database) -> Iterator[Database]:
    """Give the same database, with connections that no other test has used."""
    url = database.engine.url.render_as_string(hide_password=False)
    alone = backends.connect(url)
    yield alone
    alone.engine.dispose()


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


def test_whoever_fails_over_a_row_leaves_the_database_usable(alone: Database) -> None:
    def work(connection: sa.Connection) -> None:
        for _ in streaming.stream(connection, numbers(connection)):
            raise errors.BadRequest("This row is wrong.")

    for _ in range(3):
        with pytest.raises(errors.BadRequest):
            alone.read(work)
        assert (
            alone.read(lambda connection: connection.scalar(sa.select(sa.literal(8))))
            == 8
        )


@pytest.mark.skipif(backends.KIND != "postgresql", reason="it sends rows ahead")
def test_a_lost_connection_is_replaced_by_another_one(
    alone: Database, database: Database
) -> None:
    attempts: list[int] = []

    def end(connection: sa.Connection) -> None:
        connection.execute(sa.select(sa.func.pg_terminate_backend(attempts[0])))

    def work(connection: sa.Connection) -> int:
        attempts.append(connection.scalar(sa.text("SELECT pg_backend_pid()")) or 0)
        count = 0
        # More than fits into the buffers between the server and us.
        for _ in streaming.stream(connection, numbers(connection, 1_000_000)):
            count += 1
            if count == 1 and len(attempts) == 1:
                database.read(end)
        return count

    assert alone.read(work) == 1_000_000
    assert len(attempts) == 2


@pytest.mark.skipif(backends.KIND != "postgresql", reason="it limits statements")
def test_the_limit_for_a_statement_is_not_one_for_all_rows(database: Database) -> None:
    url = database.engine.url.render_as_string(hide_password=False)
    settings = option.DatabaseSettings(url)
    hasty = storage.connect(dataclasses.replace(settings, statement_timeout=1))
    slow: sa.Select[tuple[int]] = sa.select(
        sa.literal_column("1"), sa.func.pg_sleep(0.3)
    ).select_from(sa.func.generate_series(1, 5))

    def work(connection: sa.Connection) -> int:
        return len([*streaming.stream(connection, slow)])

    try:
        assert hasty.read(work) == 5
        # It applies to the next transaction again.
        with pytest.raises(errors.DatabaseUnavailable):
            hasty.read(lambda connection: connection.execute(slow).all())
    finally:
        hasty.engine.dispose()

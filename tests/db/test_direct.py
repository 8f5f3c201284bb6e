"""What the driver executes itself is the same as what SQLAlchemy executes."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn, TypeAlias

import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exc

from placement.db import models
from placement_foundation import errors
from placement_foundation.database import direct, trouble
from placement_foundation.database.storage import Database
from tests import backends, statements

Way: TypeAlias = Callable[[sa.Connection, Any, Mapping[str, Any]], Any]

PROVIDERS, INVENTORIES = models.ResourceProvider, models.Inventory
NAMES = ["a", "b%", "c%(d)s", "e?", ":f", "é😀"]


def execute(
    connection: sa.Connection, query: Any, parameters: Mapping[str, Any]
) -> Any:
    return connection.execute(query, parameters).all()


BOTH = [direct.fetch_all, execute]


@contextmanager
def without_sqlalchemy() -> Iterator[None]:
    """Fail where SQLAlchemy executes a statement."""

    def refuse(*unused: Any, **unused_too: Any) -> NoReturn:
        raise AssertionError("executed by SQLAlchemy")

    with pytest.MonkeyPatch.context() as patch:
        for name in ("execute", "exec_driver_sql", "_execute_context"):
            patch.setattr(sa.Connection, name, refuse)
        yield


@pytest.fixture
def filled(database: Database) -> Database:
    def fill(connection: sa.Connection) -> None:
        for number, name in enumerate(NAMES, 1):
            connection.execute(
                sa.insert(PROVIDERS).values(
                    id=number,
                    uuid=name,
                    name=name,
                    generation=number,
                    root_provider_id=1,
                    parent_provider_id=1 if number > 1 else None,
                )
            )
            connection.execute(
                sa.insert(INVENTORIES).values(
                    resource_provider_id=number,
                    resource_class_id=number,
                    total=2**31 - number,
                    allocation_ratio=1 / number,
                    **dict.fromkeys(("reserved", "min_unit", "max_unit"), 1),
                    step_size=1,
                )
            )

    database.write(fill)
    return database


PLAIN = sa.select(PROVIDERS.id, PROVIDERS.name, PROVIDERS.generation).order_by(
    PROVIDERS.id
)
TOTAL = sa.func.sum(INVENTORIES.total)
QUERIES: list[tuple[str, Any, Mapping[str, Any]]] = [
    ("no parameter", PLAIN, {}),
    (
        "times and nulls",
        sa.select(
            PROVIDERS.created_at,
            PROVIDERS.updated_at,
            PROVIDERS.parent_provider_id,
            sa.null().label("nil"),
        ).order_by(PROVIDERS.id),
        {},
    ),
    (
        "a parameter",
        PLAIN.where(PROVIDERS.name == sa.bindparam("name")),
        {"name": ":f"},
    ),
    (
        "a parameter used twice",
        PLAIN.where(
            (PROVIDERS.name == sa.bindparam("key"))
            | (PROVIDERS.uuid == sa.bindparam("key"))
        ),
        {"key": NAMES[-1]},
    ),
    (
        "constants",
        PLAIN.where(PROVIDERS.generation > 2, PROVIDERS.name.like("%%(_)s"))
        .where(PROVIDERS.id.in_([1, 2, 3]))
        .add_columns(sa.literal("50%"), sa.literal_column("'50%'").label("half")),
        {},
    ),
    (
        "sums and floats",
        sa.select(
            TOTAL,
            sa.cast(TOTAL, sa.BigInteger).label("whole"),
            sa.func.max(INVENTORIES.allocation_ratio),
            sa.func.avg(INVENTORIES.total).label("average"),
            (TOTAL > 0).label("positive"),
        ).group_by(INVENTORIES.resource_provider_id),
        {},
    ),
    (
        "several at once",
        sa.union_all(
            sa.select(PROVIDERS.id, PROVIDERS.name).where(
                PROVIDERS.name.in_(sa.bindparam("names", expanding=True))
            ),
            sa.select(PROVIDERS.id, PROVIDERS.uuid).where(
                PROVIDERS.id.in_(sa.bindparam("ids", expanding=True))
            ),
        ),
        {"names": NAMES[1:3], "ids": [4, 5, 6]},
    ),
    ("no row", PLAIN.where(PROVIDERS.id == sa.bindparam("id")), {"id": 10**6}),
]


@pytest.mark.parametrize(
    ("query", "parameters"),
    [each[1:] for each in QUERIES],
    ids=[each[0] for each in QUERIES],
)
def test_it_returns_the_same_rows(
    filled: Database, query: Any, parameters: Mapping[str, Any]
) -> None:
    with filled.engine.connect() as connection:
        expected = execute(connection, query, parameters)
        # A second time with what was remembered of the first.
        for _ in range(2):
            with without_sqlalchemy():
                rows = direct.fetch_all(connection, query, parameters)
            assert [*map(repr, map(tuple, rows))] == [*map(repr, map(tuple, expected))]
        with statements.statements(filled):
            assert direct.fetch_all(connection, query, parameters) == expected


def test_rows_have_names(filled: Database) -> None:
    query = sa.select(PROVIDERS.name, TOTAL.label("total"), PROVIDERS.uuid.label("_u"))
    query = query.join(INVENTORIES, INVENTORIES.resource_provider_id == PROVIDERS.id)
    query = query.group_by(PROVIDERS.id).order_by(PROVIDERS.id).limit(1)
    with filled.engine.connect() as connection, without_sqlalchemy():
        [row] = direct.fetch_all(connection, query, {})
    assert (row.name, row.total) == ("a", 2**31 - 1)
    # A named tuple cannot have the last one as a name.
    assert row == ("a", 2**31 - 1, "a")


def test_a_list_has_any_length(filled: Database) -> None:
    query = PLAIN.where(PROVIDERS.name.in_(sa.bindparam("names", expanding=True)))
    lists = [NAMES[:length] for length in range(len(NAMES) + 1)]
    for names in (*lists, *reversed(lists)):
        expected = [(number, name, number) for number, name in enumerate(names, 1)]
        with filled.engine.connect() as connection:
            assert direct.fetch_all(connection, query, {"names": names}) == expected
        if 0 < len(names) <= direct.LONGEST_LIST:
            with without_sqlalchemy(), filled.engine.connect() as connection:
                assert direct.fetch_all(connection, query, {"names": names}) == expected


def test_who_listens_hears_of_it(filled: Database) -> None:
    with filled.engine.connect() as connection:
        direct.fetch_all(connection, PLAIN, {})
        with statements.statements(filled) as executed:
            direct.fetch_all(connection, PLAIN, {})
    assert executed == ["SELECT resource_providers.id, resource_providers.name,"]


def test_the_log_has_it(filled: Database, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="sqlalchemy.engine")
    with filled.engine.connect() as connection:
        direct.fetch_all(connection, PLAIN, {})
    assert "FROM resource_providers" in caplog.text


def fail(
    way: Way, connection: sa.Connection, query: Any, **parameters: Any
) -> Exception:
    failures = (
        db_exc.DBError,
        db_exc.DBInvalidUnicodeParameter,
        sa.exc.SQLAlchemyError,
    )
    with pytest.raises(failures) as failed:
        way(connection, query, parameters)
    assert isinstance(failed.value, failures)
    return failed.value


def described(exc: Exception) -> tuple[object, ...]:
    """Return what tells errors apart, also those that they come from."""
    cause = exc.__cause__ or exc.__context__
    return type(exc), type(getattr(exc, "orig", None)), type(cause)


def test_a_missing_table_is_the_same_error(filled: Database) -> None:
    missing = sa.select(sa.table("missing", sa.column("id")).c.id)
    found = []
    for way in BOTH:
        with filled.engine.connect() as connection:
            failure = fail(way, connection, missing)
            assert trouble.is_missing_table(failure)
            found.append(described(failure))
            # As after any statement that has failed.
            connection.rollback()
            assert len(direct.fetch_all(connection, PLAIN, {})) == len(NAMES)
    assert found[0] == found[1]


def test_a_value_that_no_database_takes_is_the_same_error(filled: Database) -> None:
    query = PLAIN.where(PROVIDERS.name == sa.bindparam("name"))
    found = []
    for way in BOTH:
        with filled.engine.connect() as connection:
            found.append(described(fail(way, connection, query, name="\ud800")))
            connection.rollback()
            assert len(direct.fetch_all(connection, PLAIN, {})) == len(NAMES)
    assert found[0] == found[1]


@pytest.mark.parametrize("run", [Database.read, Database.write])
def test_what_a_connection_cannot_carry_is_a_bad_request(
    filled: Database, run: Callable[[Database, object], object]
) -> None:
    query = PLAIN.where(PROVIDERS.name == sa.bindparam("name"))
    for way in BOTH:
        with pytest.raises(errors.BadRequest, match="cannot store"):
            run(filled, lambda some, way=way: way(some, query, {"name": "\ud800"}))


def test_a_connection_that_cannot_be_used_is_the_same_error(filled: Database) -> None:
    found = []
    for way in BOTH:
        with filled.engine.connect() as connection:
            execute(connection, PLAIN, {})
            connection.invalidate()
            found.append(described(fail(way, connection, PLAIN)))
    assert found[0] == found[1]


IMPATIENT = {
    "postgresql": "SET lock_timeout = '50ms'",
    "mysql": "SET innodb_lock_wait_timeout = 1",
}


@pytest.mark.skipif(backends.KIND == "sqlite", reason="its readers never wait")
def test_a_lock_that_others_keep_is_the_same_error(filled: Database) -> None:
    locking, found = PLAIN.with_for_update(), []
    for way in BOTH:
        with filled.engine.connect() as first, filled.engine.connect() as second:
            second.execute(sa.text(IMPATIENT[backends.KIND]))
            first.execute(locking)
            found.append(described(fail(way, second, locking)))
            first.rollback()
            second.invalidate()
    assert found[0] == found[1]


@pytest.mark.skipif(backends.KIND == "sqlite", reason="it has no connections")
def test_a_lost_connection_is_the_same_error(
    alone: Database, database: Database
) -> None:
    found = []
    for way in BOTH:
        with alone.engine.connect() as connection:
            backends.kill(database, backends.session_of(connection))
            failure = fail(way, connection, PLAIN)
            assert isinstance(failure, db_exc.DBConnectionError)
            found.append(described(failure))
            # The pool gives it to nobody else.
            assert connection.invalidated
            connection.rollback()
            assert direct.fetch_all(connection, PLAIN, {}) == []
    assert found[0] == found[1]

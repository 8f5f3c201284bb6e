"""What the driver executes itself is the same as what SQLAlchemy executes."""

import datetime
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeAlias

import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exc

from placement.db import models
from placement_foundation import errors
from placement_foundation.clock import utc_now
from placement_foundation.database import direct, engine, trouble
from placement_foundation.database.storage import Database
from tests import backends, statements

Way: TypeAlias = Callable[[sa.Connection, Any, Mapping[str, Any]], Any]

PROVIDERS, INVENTORIES = models.ResourceProvider, models.Inventory
EPOCH = datetime.datetime(1970, 1, 1)
NAMES = ["a", "b%", "c%(d)s", "e?", ":f", "é😀"]


def execute(
    connection: sa.Connection, query: Any, parameters: Mapping[str, Any]
) -> Any:
    return connection.execute(query, parameters).all()


BOTH = [direct.fetch_all, execute]


def write(connection: sa.Connection, statement: Any, rows: Any) -> int:
    return connection.execute(statement, rows).rowcount


BOTH_WRITE: list[Callable[[sa.Connection, Any, Any], int]] = [direct.execute, write]


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
    (
        "constants that are stored in another form",
        PLAIN.where(
            PROVIDERS.created_at > EPOCH,
            PROVIDERS.created_at.not_in([EPOCH, EPOCH.replace(year=1980)]),
            PROVIDERS.name.in_(sa.bindparam("names", expanding=True)),
        ),
        {"names": NAMES[:2]},
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


INSERT = sa.insert(INVENTORIES).inline()
UPDATE = (
    sa.update(INVENTORIES)
    .where(INVENTORIES.resource_provider_id == sa.bindparam("provider"))
    .values(total=INVENTORIES.total - 1, allocation_ratio=sa.bindparam("ratio"))
)
DELETE = sa.delete(INVENTORIES).where(INVENTORIES.total < sa.bindparam("least"))
TIMES = ("created_at", "updated_at")

STORED = sa.select(
    *(
        each
        for each in sa.inspect(INVENTORIES).columns
        if each.key not in ("id", *TIMES)
    ),
    (INVENTORIES.created_at == EPOCH).label("since_the_epoch"),
).order_by(INVENTORIES.resource_provider_id, INVENTORIES.resource_class_id)
ROW = {
    "resource_provider_id": 1,
    "total": 2**31 - 1,
    "allocation_ratio": 0.1,
    **dict.fromkeys(("reserved", "min_unit", "max_unit", "step_size"), 1),
}
ROWS = [{**ROW, "resource_class_id": number} for number in (7, 8, 9)]
# The last is how many rows are matched, if the driver says so.
WRITES: list[tuple[str, Any, Sequence[Mapping[str, Any]], int | None]] = [
    ("insert a row", INSERT, ROWS[:1], None),
    ("insert rows", INSERT, ROWS, None),
    ("update a row", UPDATE, [{"provider": 2, "ratio": 1.5}], 1),
    ("update rows", UPDATE, [{"provider": each, "ratio": 0.1} for each in (2, 3)], 2),
    ("update none", UPDATE, [{"provider": 10**6, "ratio": 1.5}], 0),
    (
        "constants that are stored in another form",
        sa.update(INVENTORIES)
        .where(INVENTORIES.created_at > EPOCH, INVENTORIES.updated_at.is_(None))
        .where(INVENTORIES.created_at.not_in([EPOCH, EPOCH.replace(year=1980)]))
        .where(INVENTORIES.total < sa.bindparam("most"))
        .values(created_at=EPOCH, updated_at=None),
        [{"most": 2**31 - 2}],
        4,
    ),
    ("delete rows", DELETE, [{"least": 2**31 - each} for each in (4, 3)], 3),
]


def transaction(database: Database) -> sa.Connection:
    """Return a connection for a transaction that is rolled back at its end."""
    return engine.for_transaction(database.engine, engine.WRITE)


@pytest.mark.parametrize(
    ("statement", "rows", "matched"),
    [each[1:] for each in WRITES],
    ids=[each[0] for each in WRITES],
)
def test_it_writes_the_same(
    filled: Database,
    statement: Any,
    rows: Sequence[Mapping[str, Any]],
    matched: int | None,
) -> None:
    found = []
    # A second time with what was remembered of the first.
    for way in (*BOTH_WRITE, direct.execute):
        with transaction(filled) as connection:
            assert matched in (None, way(connection, statement, rows))
            found.append(connection.execute(STORED).all())
    assert [*map(repr, found[0])] == [*map(repr, found[1])] == [*map(repr, found[2])]


def test_columns_without_a_value_get_their_defaults(filled: Database) -> None:
    row = INVENTORIES
    created = sa.select(row.created_at).where(row.resource_class_id == 7)
    updated = sa.select(row.updated_at).where(row.resource_provider_id == 2)
    before = utc_now().replace(microsecond=0)
    with transaction(filled) as connection:
        direct.execute(connection, INSERT, ROWS)
        direct.execute(connection, UPDATE, [{"provider": 2, "ratio": 1.5}])
        for query in (created, updated):
            time: Any = connection.execute(query).scalar_one()
            # Servers may round.
            assert 0 <= (time - before).total_seconds() < 60


def test_sqlalchemy_is_not_asked_to_write(filled: Database) -> None:
    with transaction(filled) as connection:
        with without_sqlalchemy():
            for _, statement, rows, _ in WRITES[1:]:
                if len(rows) == 1 or connection.dialect.driver != "psycopg2":
                    direct.execute(connection, statement, rows)
        with statements.statements(filled) as executed:
            direct.execute(connection, DELETE, [{"least": 0}])
    assert executed == ["DELETE FROM inventories"]


def test_a_constant_may_be_a_default(filled: Database) -> None:
    number = sa.Column("number", sa.Integer, default=7)
    table = sa.Table("with_default", sa.MetaData(), sa.Column("id", sa.Integer), number)
    table.create(filled.engine)
    try:
        with transaction(filled) as connection:
            direct.execute(connection, sa.insert(table).inline(), [{"id": 1}])
            assert connection.execute(sa.select(table)).one() == (1, 7)
    finally:
        table.drop(filled.engine)


def test_lists_are_refused(filled: Database) -> None:
    wanted: Any = sa.bindparam("wanted", expanding=True)
    several = sa.delete(INVENTORIES).where(INVENTORIES.id.in_(wanted))
    with transaction(filled) as connection, pytest.raises(ValueError, match="a list"):
        direct.execute(connection, several, [{"wanted": [1, 2]}])


def test_an_error_does_not_show_all_rows(filled: Database) -> None:
    rows = [{**ROW, "resource_class_id": number} for number in (*range(2000), 1)]
    with (
        transaction(filled) as connection,
        pytest.raises(db_exc.DBDuplicateEntry) as failed,
    ):
        direct.execute(connection, INSERT, rows)
    assert len(str(failed.value)) < 5000


def test_a_row_that_lacks_a_value_is_not_written(filled: Database) -> None:
    lacking = [ROWS[0], {**ROWS[1]}]
    del lacking[1]["total"]
    for some in (lacking, lacking[1:]):
        with (
            transaction(filled) as connection,
            pytest.raises((KeyError, db_exc.DBError, sa.exc.DBAPIError)),
        ):
            direct.execute(connection, INSERT, some)


@pytest.mark.parametrize("count", [1, 3])
def test_a_duplicate_is_the_same_error(filled: Database, count: int) -> None:
    found = []
    for way in BOTH_WRITE:
        with transaction(filled) as connection:
            way(connection, INSERT, ROWS[-1:])
            with pytest.raises(db_exc.DBDuplicateEntry) as failed:
                way(connection, INSERT, ROWS[-count:])
            found.append((described(failed.value), failed.value.columns))
    assert found[0] == found[1]


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

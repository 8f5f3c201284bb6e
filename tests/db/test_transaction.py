"""How a transaction begins, and what it leaves behind."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exc

from placement.db import models
from placement.model.entry import Entry, EntryType
from placement.objects.ledger import Ledger
from placement.objects.transaction import Transaction
from placement_foundation import errors, option
from placement_foundation.database import storage
from placement_foundation.database.storage import Database
from placement_foundation.database.trouble import LostRaceError
from tests import backends

ADD = sa.insert(models.Trait).values(name="CUSTOM_ONE")
COUNT = sa.select(sa.func.count(models.Trait.id)).where(
    models.Trait.name == "CUSTOM_ONE"
)


def count(database: Database) -> int:
    return database.read(lambda connection: connection.scalar(COUNT) or 0)


def add(tx: Transaction) -> None:
    tx.connection.execute(ADD)
    tx.record_names([Entry(EntryType.TRAIT_CREATED, "CUSTOM_ONE")])


def test_another_attempt_has_nothing_of_the_one_that_failed(
    ledger: Ledger,
) -> None:
    attempts: list[Transaction] = []

    def lose_once(tx: Transaction) -> None:
        assert (tx.entries, tx.has_changed_names, tx.after_commit) == ({}, False, [])
        attempts.append(tx)
        add(tx)
        if len(attempts) == 1:
            raise LostRaceError

    ledger.write(lose_once)
    assert len(attempts) == 2
    assert count(ledger.database) == 1


def test_what_follows_the_commit_is_done_once_it_has_committed(
    ledger: Ledger,
) -> None:
    seen = []

    def work(tx: Transaction) -> None:
        add(tx)
        tx.after_commit.append(lambda: seen.append(count(ledger.database)))

    backends.fail_next_commit(ledger.database)
    ledger.write(work)
    assert seen == [1]


@pytest.mark.parametrize("failure", [errors.BadRequest, LookupError, KeyboardInterrupt])
def test_a_failure_takes_everything_back(
    database: Database, failure: type[BaseException]
) -> None:
    def work(connection: sa.Connection) -> None:
        connection.execute(ADD)
        raise failure

    with pytest.raises(failure):
        database.write(work)
    assert count(database) == 0
    assert _in_use(database) == 0


def _in_use(database: Database) -> int:
    """Return how many connections are not in the pool."""
    pool = database.engine.pool
    assert isinstance(pool, sa.QueuePool)
    return pool.checkedout()


@pytest.mark.parametrize(("losses", "written"), [(19, 1), (20, 0)])
def test_a_write_that_loses_races_is_given_up_after_twenty(
    database: Database, monkeypatch: pytest.MonkeyPatch, losses: int, written: int
) -> None:
    monkeypatch.setattr(storage, "_pause", lambda attempt: 0.0)
    attempts: list[sa.Connection] = []

    def lose(connection: sa.Connection) -> None:
        attempts.append(connection)
        if len(attempts) <= losses:
            raise LostRaceError
        connection.execute(ADD)

    if written:
        database.write(lose)
    else:
        with pytest.raises(errors.ConcurrentUpdate):
            database.write(lose)
    assert count(database) == written
    assert len(attempts) == 20


class _Refusal(Exception):
    """What a driver of MariaDB raises."""


def _refusal(number: int, message: str) -> sa.exc.DBAPIError:
    return sa.exc.DBAPIError("", {}, _Refusal(number, message))


@pytest.mark.parametrize("run", [Database.read, Database.write])
def test_a_transaction_that_meets_a_migration_begins_again(
    database: Database, run: Callable[[Database, object], object]
) -> None:
    attempts: list[sa.Connection] = []

    def meet(connection: sa.Connection) -> int:
        attempts.append(connection)
        if len(attempts) == 1:
            raise _refusal(1684, "its definition is being modified by concurrent DDL")
        return 1

    assert run(database, meet) == 1
    assert len(attempts) == 2


@pytest.mark.parametrize(
    "refusal",
    [
        (1180, "Got error 6 'No such device or address' during COMMIT"),
        (1105, "Not connected to Primary Component"),
        (1047, "WSREP has not yet prepared node for application use"),
    ],
)
def test_a_commit_with_an_unknown_outcome_is_not_run_again(
    database: Database, refusal: tuple[int, str]
) -> None:
    attempts: list[sa.Connection] = []

    def refuse(connection: sa.Connection) -> None:
        raise _refusal(*refusal)

    def work(connection: sa.Connection) -> None:
        attempts.append(connection)
        connection.execute(ADD)
        sa.event.listen(connection.engine, "commit", refuse, once=True)

    with pytest.raises(errors.DatabaseUnavailable):
        database.write(work)
    assert len(attempts) == 1
    assert _in_use(database) == 0


def prepares(database: Database) -> bool:
    return database.engine.dialect.driver == "psycopg"


@pytest.mark.parametrize("run", [Database.read, Database.write])
def test_plans_that_a_migration_has_spoilt_are_made_again(
    alone: Database, database: Database, run: Callable[[Database, object], object]
) -> None:
    if not prepares(alone):
        pytest.skip("its driver does not prepare statements")
    names = sa.select(models.User.external_id).where(models.User.id == 1)
    barrier = threading.Barrier(5)

    def read(connection: sa.Connection) -> list[Any]:
        return [*connection.execute(names)]

    def read_often(number: int) -> None:
        # Each has a connection of its own.
        def work(connection: sa.Connection) -> None:
            barrier.wait(30)
            for _ in range(10):
                read(connection)

        alone.read(work)

    with ThreadPoolExecutor(5) as pool:
        [*pool.map(read_often, range(5))]
    wide = sa.text("ALTER TABLE users ALTER COLUMN external_id TYPE varchar(300)")
    usual = sa.text("ALTER TABLE users ALTER COLUMN external_id TYPE varchar(255)")
    database.write(lambda connection: connection.execute(wide))
    try:
        assert run(alone, read) == []
    finally:
        database.write(lambda connection: connection.execute(usual))


def test_what_a_database_cannot_do_is_no_lost_race(alone: Database) -> None:
    if not prepares(alone):
        pytest.skip("it can do that")
    attempts: list[sa.Connection] = []

    def ask_too_much(connection: sa.Connection) -> None:
        attempts.append(connection)
        connection.execute(sa.text("SELECT DISTINCT id FROM users FOR UPDATE"))

    with pytest.raises(db_exc.DBError, match="DISTINCT"):
        alone.write(ask_too_much)
    assert len(attempts) == 1


def test_what_is_not_read_to_the_end_holds_no_snapshot(
    database: Database, alone: Database
) -> None:
    """A reader of the journal would not see what was committed since."""
    name = models.Trait.name

    def fail(connection: sa.Connection) -> None:
        names = sa.select(name).execution_options(yield_per=10)
        result = connection.execute(names)
        result.fetchone()
        raise ValueError("damaged")

    held = []
    if backends.KIND == "sqlite":
        with pytest.raises(ValueError, match="damaged") as failed:
            database.read(fail)
        held.append(failed.tb)
    row = sa.insert(models.Trait).values(name="CUSTOM_LATER")
    alone.write(lambda connection: connection.execute(row).close())
    later = sa.select(name).where(name == "CUSTOM_LATER")
    for _ in range(3):
        assert database.read(lambda connection: connection.scalar(later))
    held.clear()


def test_a_database_in_memory_survives_an_error() -> None:
    url = "sqlite:///file:kept?mode=memory&cache=shared&uri=true"
    database = storage.connect(option.DatabaseSettings(url))

    def fail(connection: sa.Connection) -> None:
        raise errors.NotFound

    database.write(
        lambda connection: connection.exec_driver_sql("CREATE TABLE kept (id INT)")
    )
    with pytest.raises(errors.NotFound):
        database.read(fail)
    table = sa.table("kept", sa.column("id"))
    assert database.read(lambda c: c.execute(sa.select(table)).all()) == []
    database.engine.dispose()

"""A database that is away, silent, busy or set up strangely."""

import contextlib
import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exc

from placement import app
from placement.db import models
from placement_foundation import errors, option
from placement_foundation.database import engine, storage, trouble
from placement_foundation.database.storage import Database
from tests import backends
from tests.client import Client
from tests.proxy import Proxy
from tests.settings import make_config

of_a_server = pytest.mark.skipif(backends.KIND == "sqlite", reason="of servers")

CUSTOM = models.Trait.name.startswith("CUSTOM")
STORED = sa.select(models.Trait.id).where(CUSTOM)
RENAME = sa.update(models.Trait).where(CUSTOM).values(name="CUSTOM_RENAMED")

HOSTILE = {
    "sqlite": [""],
    "postgresql": [
        "options=-c%20default_transaction_isolation%3Dserializable",
        "options=-c%20default_transaction_isolation%3Drepeatable%5C%20read",
        "options=-c%20default_transaction_read_only%3Don",
    ],
    "mysql": [
        "init_command=SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "init_command=SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        "init_command=SET SESSION TRANSACTION READ ONLY",
    ],
}


def settings_of(database: Database, **changes: Any) -> option.DatabaseSettings:
    url = database.engine.url.render_as_string(hide_password=False)
    return option.DatabaseSettings(url, max_retries=1, retry_interval=0, **changes)


@contextlib.contextmanager
def opened(settings: option.DatabaseSettings) -> Iterator[Database]:
    database = storage.connect(settings)
    try:
        yield database
    finally:
        database.engine.dispose()


@pytest.fixture
def prepared(database: Database) -> Database:
    add(database, "CUSTOM_FIRST")
    return database


def add(database: Database, name: str) -> None:
    database.write(
        lambda connection: connection.execute(sa.insert(models.Trait).values(name=name))
    )


def count(connection: sa.Connection) -> int:
    """Return how many traits there are that are not standard."""
    query = sa.select(sa.func.count(models.Trait.id)).where(CUSTOM)
    return connection.execute(query).scalar_one()


class TestIsolation:
    """Whatever the server's defaults are."""

    @pytest.fixture(params=HOSTILE[backends.KIND])
    def hostile(
        self, prepared: Database, request: pytest.FixtureRequest
    ) -> Iterator[Database]:
        settings = settings_of(prepared, connection_parameters=request.param)
        with opened(settings) as database:
            yield database

    def test_a_reader_sees_one_moment(
        self, prepared: Database, hostile: Database
    ) -> None:
        def look_twice(connection: sa.Connection) -> tuple[int, int]:
            before = count(connection)
            add(prepared, "CUSTOM_SECOND")
            return before, count(connection)

        assert hostile.read(look_twice) == (1, 1)
        assert hostile.read(count) == 2

    @pytest.mark.skipif(backends.KIND == "sqlite", reason="it has one writer")
    def test_a_writer_sees_what_others_have_committed(
        self, prepared: Database, hostile: Database
    ) -> None:
        def look_twice(connection: sa.Connection) -> tuple[int, int]:
            before = count(connection)
            add(prepared, "CUSTOM_SECOND")
            return before, count(connection)

        assert hostile.write(look_twice) == (1, 2)

    def test_a_writer_writes(self, hostile: Database) -> None:
        add(hostile, "CUSTOM_SECOND")
        assert hostile.read(count) == 2

    def test_a_reader_does_not(self, hostile: Database) -> None:
        if backends.KIND == "sqlite":
            pytest.skip("its transactions have no mode for that")
        insert = sa.insert(models.Trait).values(name="CUSTOM_SECOND")
        with pytest.raises(errors.DatabaseUnavailable):
            hostile.read(lambda connection: connection.execute(insert))


@contextlib.contextmanager
def locked(database: Database) -> Iterator[None]:
    """Keep others from changing the first trait."""
    begin = "BEGIN IMMEDIATE" if backends.KIND == "sqlite" else None
    with database.engine.connect() as connection:
        if begin:
            connection.exec_driver_sql(begin)
        connection.execute(RENAME)
        yield
        connection.rollback()


def rename(connection: sa.Connection) -> None:
    connection.execute(RENAME)


def test_waiting_too_long_for_a_lock_is_an_error(
    prepared: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "PATIENCE", 1)
    with opened(settings_of(prepared, lock_timeout=1)) as database:
        with locked(prepared), pytest.raises(errors.DatabaseUnavailable):
            database.write(rename)
        database.write(rename)


@of_a_server
def test_a_lock_that_is_let_go_in_time_is_waited_for(prepared: Database) -> None:
    attempts: list[int] = []
    with (
        opened(settings_of(prepared, lock_timeout=1)) as database,
        contextlib.ExitStack() as held,
    ):
        held.enter_context(locked(prepared))

        def work(connection: sa.Connection) -> None:
            attempts.append(1)
            if len(attempts) > 1:
                held.close()
            rename(connection)

        database.write(work)
    assert len(attempts) == 2


@of_a_server
def test_a_statement_that_takes_too_long_is_ended(prepared: Database) -> None:
    slow = {
        "postgresql": "SELECT pg_sleep(600)",
        "mysql": "SELECT sleep(600) FROM traits LIMIT 1",
    }[backends.KIND]
    with (
        opened(settings_of(prepared, statement_timeout=1)) as database,
        pytest.raises(errors.DatabaseUnavailable),
    ):
        database.read(lambda connection: connection.execute(sa.text(slow)))


def test_a_pool_without_a_free_connection_is_not_a_bug(
    prepared: Database,
) -> None:
    if backends.KIND == "sqlite":
        pytest.skip("its pool has no end")
    settings = settings_of(prepared, max_pool_size=1, max_overflow=0, pool_timeout=1)
    with opened(settings) as database:
        with database.engine.connect(), pytest.raises(errors.DatabaseUnavailable):
            database.read(count)
        assert database.read(count) == 1


def test_transactions_beyond_the_most_are_refused_while_all_of_these_wait(
    prepared: Database,
) -> None:
    settings = settings_of(prepared, max_transactions=2, lock_timeout=1)
    full = threading.Barrier(3)
    free = threading.Event()

    def wait(connection: sa.Connection) -> None:
        full.wait()
        free.wait()

    with opened(settings) as database:
        waiting = [
            threading.Thread(target=database.read, args=(wait,)) for _ in range(2)
        ]
        for thread in waiting:
            thread.start()
        full.wait()
        with pytest.raises(errors.DatabaseUnavailable):
            database.read(count)
        free.set()
        for thread in waiting:
            thread.join()
        assert database.read(count) == 1


@of_a_server
class TestNetwork:
    """A service that has lost its database server."""

    @pytest.fixture
    def settings(self, prepared: Database, network: Proxy) -> option.DatabaseSettings:
        url = prepared.engine.url.set(host="127.0.0.1", port=network.port)
        return option.DatabaseSettings(
            url.render_as_string(hide_password=False),
            max_retries=1,
            retry_interval=0,
            statement_timeout=1,
        )

    @pytest.fixture
    def cut_off(self, settings: option.DatabaseSettings) -> Iterator[Database]:
        with opened(settings) as database:
            assert database.read(count) == 1
            yield database

    @pytest.mark.parametrize("kind", ["read", "write"])
    def test_a_connection_that_breaks_is_replaced(
        self, network: Proxy, cut_off: Database, kind: str
    ) -> None:
        attempts: list[int] = []

        def work(connection: sa.Connection) -> int:
            attempts.append(1)
            if len(attempts) == 1:
                count(connection)
                network.hang_up()
            return count(connection)

        assert getattr(cut_off, kind)(work) == 1
        assert len(attempts) == 2

    def test_a_connection_that_breaks_again_is_reported(
        self, network: Proxy, cut_off: Database
    ) -> None:
        attempts: list[int] = []

        def work(connection: sa.Connection) -> int:
            attempts.append(count(connection))
            network.hang_up()
            return count(connection)

        with pytest.raises(errors.DatabaseUnavailable):
            cut_off.read(work)
        assert len(attempts) == 2

    def test_a_commit_whose_answer_is_lost_is_not_run_again(
        self, network: Proxy, cut_off: Database
    ) -> None:
        attempts: list[int] = []

        def work(connection: sa.Connection) -> None:
            attempts.append(1)
            rename(connection)
            sa.event.listen(connection, "commit", lambda _: network.hang_up())

        with pytest.raises(errors.DatabaseUnavailable):
            cut_off.write(work)
        assert len(attempts) == 1

    def test_a_missing_server_is_reported_and_found_again(
        self, network: Proxy, cut_off: Database
    ) -> None:
        def work(connection: sa.Connection) -> int:
            return len(connection.execute(STORED).all())

        network.fail()
        for _ in range(3):
            with pytest.raises(errors.DatabaseUnavailable):
                cut_off.read(work)
        network.up = True
        assert cut_off.read(work) == cut_off.read(count) == 1

    def test_what_is_static_is_answered_without_a_server(
        self, network: Proxy, cut_off: Database
    ) -> None:
        client = Client(app.build(make_config(), cut_off))
        network.fail()
        for path in ("/", "/ledger/v1", "/openapi.json"):
            assert client.call("GET", path).status == 200
        assert client.call("GET", "/traits").status == 503

    def test_a_server_that_says_nothing_is_given_up(
        self, prepared: Database, network: Proxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(engine, "GRACE", 1)
        url = prepared.engine.url.set(host="127.0.0.1", port=network.port)
        settings = settings_of(prepared, statement_timeout=1, connect_timeout=2)
        settings = dataclasses.replace(
            settings, connection=url.render_as_string(hide_password=False)
        )
        with opened(settings) as database:
            database.read(count)
            network.silent = True
            with pytest.raises(errors.DatabaseUnavailable):
                database.read(count)
            network.silent = False
            assert database.read(count) == 1

    def test_a_start_asks_as_often_as_the_settings_say(
        self,
        settings: option.DatabaseSettings,
        network: Proxy,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        network.fail()
        patient = dataclasses.replace(settings, max_retries=3)
        with pytest.raises((sa.exc.DBAPIError, db_exc.DBError)) as caught:
            storage.connect(patient)
        assert trouble.is_unavailable(caught.value)
        assert caplog.text.count("the database is not there yet") == 2

    def test_a_start_waits_until_the_server_is_there(
        self,
        settings: option.DatabaseSettings,
        network: Proxy,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        network.fail()

        def mend(seconds: float) -> None:
            network.up = True

        monkeypatch.setattr(time, "sleep", mend)
        with opened(dataclasses.replace(settings, max_retries=-1)) as database:
            assert database.read(count) == 1

    def test_a_refused_start_is_not_tried_again(
        self,
        settings: option.DatabaseSettings,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        url = sa.make_url(settings.connection).set(database="not_there")
        unknown = dataclasses.replace(
            settings,
            connection=url.render_as_string(hide_password=False),
            max_retries=3,
        )
        with pytest.raises(Exception, match=r"not_there|nknown database"):
            storage.connect(unknown)
        assert "not there yet" not in caplog.text


def test_the_api_says_that_it_may_be_asked_again(
    client: Client,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(work: object) -> None:
        raise sa.exc.TimeoutError("QueuePool limit reached")

    with monkeypatch.context() as patch:
        patch.setattr(database, "_read_once", fail)
        patch.setattr(database, "_write_once", fail)
        for method, path in (("GET", "/traits"), ("PUT", "/traits/CUSTOM_A")):
            answer = client.send(method, path)
            assert answer.status_int == 503
            assert answer.headers["retry-after"] == "1"
            [error] = answer.json["errors"]
            assert error["code"] == "placement.database_unavailable"
    assert client.send("GET", "/traits").status_int == 200
    told = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(told) == 2
    assert all("not available: QueuePool limit" in record.message for record in told)


class Refusal(Exception):
    """What a driver raises."""

    def __init__(self, *args: object, sqlstate: str | None = None) -> None:
        super().__init__(*args)
        self.sqlstate = sqlstate


def wrapped(orig: BaseException) -> sa.exc.DBAPIError:
    return sa.exc.DBAPIError("SELECT", {}, orig)


@pytest.mark.parametrize(
    ("orig", "judge"),
    [
        (Refusal(sqlstate="25006"), trouble.is_unavailable),
        (Refusal(sqlstate="53300"), trouble.is_unavailable),
        (Refusal(sqlstate="57P03"), trouble.is_unavailable),
        (Refusal(sqlstate="53100"), trouble.is_unavailable),
        (Refusal(sqlstate="25P03"), trouble.is_unavailable),
        (Refusal(1290, "--read-only"), trouble.is_unavailable),
        (Refusal(1047, "WSREP has not yet prepared node"), trouble.is_unavailable),
        (Refusal(1040, "Too many connections"), trouble.is_unavailable),
        (Refusal(2013, "Lost connection"), trouble.is_unavailable),
        (Refusal(1180, "Got error 6 during COMMIT"), trouble.is_unavailable),
        (Refusal(1105, "Not connected to Primary Component"), trouble.is_unavailable),
        (Refusal(1412, "Table definition has changed"), trouble.is_lost_race),
        (Refusal(1684, "modified by concurrent DDL"), trouble.is_lost_race),
        (Refusal(sqlstate="55P03"), trouble.is_lost_race),
        (Refusal(sqlstate="40001"), trouble.is_lost_race),
        (Refusal(1205, "Lock wait timeout exceeded"), trouble.is_lost_race),
        (Refusal(1020, "Record has changed since last read"), trouble.is_lost_race),
    ],
    ids=lambda value: getattr(value, "sqlstate", None) or str(value).split(" at ")[0],
)
def test_what_servers_say_is_understood(
    orig: Exception, judge: Callable[[Exception], bool]
) -> None:
    judges = trouble.is_lost_race, trouble.is_unavailable
    assert [each(wrapped(orig)) for each in judges] == [
        each is judge for each in judges
    ]


@pytest.mark.parametrize(
    "exc",
    [KeyError(1290), OSError(28, "no space"), wrapped(Refusal(1054, "no such column"))],
    ids=str,
)
def test_bugs_of_ours_are_not_blamed_on_the_database(exc: Exception) -> None:
    assert not trouble.is_unavailable(exc)
    assert not trouble.is_lost_race(exc)
    assert not trouble.is_unstorable(exc)


def test_a_driver_without_a_class_for_it_refuses_a_value() -> None:
    """Such as psycopg2."""
    refusal = ValueError("A string literal cannot contain NUL (0x00) characters.")
    assert trouble.is_unstorable(db_exc.DBError(refusal))


def test_pauses_grow_and_end() -> None:
    for attempt in range(1, 30):
        pause = storage._pause(attempt)
        assert pause <= storage.LONGEST_PAUSE
        assert pause >= min(storage.LONGEST_PAUSE, 0.01 * 2**attempt) / 2

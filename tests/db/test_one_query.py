"""A read that takes one query needs no transaction, and is as good as one."""

import contextlib
import functools
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import pytest
import sqlalchemy as sa

from placement.db import models
from placement.forest import cache, kept
from placement.forest.kept import Kept
from placement.routes import ROUTES
from placement_foundation import option
from placement_foundation.database import direct, storage, streaming, trouble
from placement_foundation.database.connection import OneQuery
from placement_foundation.database.storage import Database
from placement_foundation.observing import telemetry
from tests import backends
from tests.client import new_uuid
from tests.instances import Instance, Instances
from tests.proxy import Proxy

pytestmark = [
    pytest.mark.usefixtures("undisturbed"),
    pytest.mark.skipif(
        "psycopg2" in backends.SERVERS.get(backends.KIND, ""),
        reason="it always begins a transaction",
    ),
]

Way: TypeAlias = Callable[[sa.Connection, Any], Any]

TRAITS = models.Trait
NAMES = sa.select(TRAITS.name).where(TRAITS.name.like("CUSTOM_%")).order_by(TRAITS.id)
MISSING = sa.select(sa.table("missing", sa.column("id")).c.id)
NAMED = NAMES.where(TRAITS.name == sa.bindparam("name"))
# How many times a server is asked for one: MySQL has to end what began with it.
ONCE = {"postgresql": 1, "mysql": 2}
# One more to begin the transaction of a reader, and one to end it.
TRANSACTION = 2


def ask_directly(connection: sa.Connection, query: Any) -> Any:
    return direct.fetch_all(connection, query, {})


def ask_sqlalchemy(connection: sa.Connection, query: Any) -> Any:
    return connection.execute(query).all()


def ask_streaming(connection: sa.Connection, query: Any) -> Any:
    return list(streaming.stream(connection, query))


WAYS = [ask_directly, ask_sqlalchemy, ask_streaming]


def add(connection: sa.Connection, name: str) -> None:
    connection.execute(sa.insert(TRAITS).values(name=name))


def names(rows: Any) -> list[str]:
    return [row[0] for row in rows]


def read(database: Database, *, one_query: bool = True) -> list[str]:
    return database.read(
        lambda connection: names(ask_directly(connection, NAMES)), one_query=one_query
    )


class Executed:
    """What SQLite was told, by any connection of a database that is opened later."""

    def __init__(self, database: Database) -> None:
        self.statements: list[str] = []
        database.engine.dispose()
        sa.event.listen(database.engine, "connect", self.trace)

    def trace(self, connection: sqlite3.Connection, record: object) -> None:
        connection.set_trace_callback(self.statements.append)


def paths(instance: Instance) -> dict[str, list[str]]:
    """Return paths of what one query answers, by template, after planting it."""
    client = instance.client
    provider, empty = client.make_provider(VCPU=9), client.make_provider()
    consumer = new_uuid()
    assert client.claim(consumer, {provider: {"VCPU": 1}}).status == 204
    place = {
        "uuid": provider,
        "consumer_uuid": consumer,
        "resource_class": "VCPU",
    }
    found = {
        template: [template.format(**place)]
        for template, methods in ROUTES.items()
        if "GET" in methods and methods["GET"].one_query
    }
    found["/resource_providers/{uuid}/allocations"].append(
        f"/resource_providers/{empty}/allocations"
    )
    found["/resource_providers"] = [
        f"/resource_providers?in_tree={provider}",
        f"/resource_providers?uuid={provider}",
        f"/resource_providers?name={provider}",
    ]
    return found


def test_these_take_one_query(instances: Instances) -> None:
    provider = "/resource_providers/{uuid}"
    assert sorted(paths(instances.start())) == [
        "/allocations/{consumer_uuid}",
        "/resource_providers",
        provider,
        f"{provider}/aggregates",
        f"{provider}/allocations",
        f"{provider}/inventories",
        f"{provider}/inventories/{{resource_class}}",
        f"{provider}/traits",
        f"{provider}/usages",
    ]


@pytest.mark.skipif(backends.KIND == "sqlite", reason="it is asked without a network")
def test_a_server_is_asked_once(
    database: Database, network: Proxy, instances: Instances
) -> None:
    url = database.engine.url.set(host="127.0.0.1", port=network.port)
    far = Instance(url.render_as_string(hide_password=False))
    instances.all.append(far)
    for path in [each for some in paths(far).values() for each in some]:
        counts = []
        for _ in range(5):
            before = network.asked
            assert far.client.call("GET", path).status == 200
            counts.append(network.asked - before)
        # Now and then a connection is asked whether it works, or to prepare a query.
        assert min(counts) == ONCE[backends.KIND], path
    # What takes several, begins and ends a transaction.
    before = network.asked
    assert far.client.call("GET", "/usages?project_id=team-blue").status == 200
    assert network.asked - before > TRANSACTION


@pytest.mark.skipif(backends.KIND != "sqlite", reason="of SQLite")
def test_sqlite_begins_no_transaction(instances: Instances) -> None:
    one = instances.start()
    found = paths(one)
    executed = Executed(one.database)
    for path in [each for some in found.values() for each in some]:
        one.client.call("GET", path)
        executed.statements.clear()
        assert one.client.call("GET", path).status == 200
        [query] = executed.statements
        assert query.startswith("SELECT"), path
    one.client.call("GET", "/usages?project_id=team-blue")
    assert executed.statements[-1] == "ROLLBACK"


def read_twice(
    database: Database, first: Way, second: Way
) -> tuple[list[str], list[str], int]:
    """Return what two queries find, with a write in between, and how often it began."""
    calls: list[int] = []

    def work(connection: sa.Connection) -> tuple[list[str], list[str]]:
        calls.append(1)
        before = names(first(connection, NAMES))
        database.write(lambda other: add(other, f"CUSTOM_{len(calls)}"))
        return before, names(second(connection, NAMES))

    before, after = database.read(work, one_query=True)
    return before, after, len(calls)


@pytest.mark.parametrize("second", WAYS)
def test_work_with_a_second_query_sees_one_moment(
    database: Database, second: Way
) -> None:
    found = read_twice(database, ask_directly, second)
    assert found == (["CUSTOM_1"], ["CUSTOM_1"], 2)
    assert read(database) == ["CUSTOM_1", "CUSTOM_2"]


@pytest.mark.parametrize("first", [ask_sqlalchemy, ask_streaming])
def test_work_that_begins_otherwise_begins_again_before_it_has_read_anything(
    database: Database, first: Way
) -> None:
    assert read_twice(database, first, ask_directly) == ([], [], 2)
    assert read(database) == ["CUSTOM_2"]


def test_whoever_listens_sees_a_transaction(alone: Database) -> None:
    begun: list[int] = []

    @sa.event.listens_for(alone.engine, "begin")
    def note(connection: sa.Connection) -> None:
        begun.append(1)

    assert read(alone) == []
    assert not begun

    @sa.event.listens_for(alone.engine, "before_cursor_execute")
    def listen(*unused: object) -> None:
        """Listen to statements, as tracers do."""

    assert read(alone) == []
    assert begun == [1]


def test_what_is_known_to_take_more_begins_a_transaction(
    instances: Instances,
) -> None:
    one = instances.start()
    *_, by_name = paths(one)["/resource_providers"]
    one.client.get(by_name)
    taken: list[int] = []
    take = OneQuery.take

    def count(connection: OneQuery) -> Any:
        taken.append(1)
        return take(connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OneQuery, "take", count)
        one.client.call("GET", f"{by_name}&required=CUSTOM_NONE")
        one.clock.now = 2 * cache.FOLLOW_EVERY
        one.client.get(by_name)
        assert not taken
        # What another instance has changed cannot be known.
        other = instances.start()
        other.client.call("PUT", "/traits/CUSTOM_NEW")
        one.client.get(by_name)
        assert taken


class Steps(telemetry.Observer):
    """Notes the steps of requests."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def record(
        self, measure: telemetry.Measure, amount: float, labels: Mapping[str, str]
    ) -> None:
        if measure is telemetry.STEP_SECONDS:
            self.names.append(labels["step"])


def test_work_that_begins_again_is_timed_once(instances: Instances) -> None:
    one = instances.start()
    *_, by_name = paths(one)["/resource_providers"]
    one.client.get(by_name)
    one.clock.now = 2 * cache.FOLLOW_EVERY
    steps = Steps()
    telemetry.add(steps)
    try:
        one.client.get(by_name)
    finally:
        telemetry.remove(steps)
    assert sorted(steps.names) == ["load", "rendering", "transaction"]


def test_a_query_is_made_for_the_server_that_there_is(
    alone: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which SQL it understands is known from the first connection on."""
    known: list[object] = []

    def prepare(query: Any, dialect: sa.Dialect, shape: Any) -> Any:
        known.append(dialect.server_version_info)
        return compiled(query, dialect, shape)

    compiled = direct._prepare
    monkeypatch.setattr(direct, "_prepare", prepare)
    with opened(alone.engine.url) as fresh:
        assert read(fresh) == []
    assert known[0]


@contextlib.contextmanager
def opened(url: sa.URL) -> Iterator[Database]:
    """Yield a database that nobody has connected to yet."""
    text = url.render_as_string(hide_password=False)
    database = storage.connect(option.DatabaseSettings(text, max_retries=0))
    try:
        yield database
    finally:
        database.engine.dispose()


def test_what_prepares_connections_sees_them_all(alone: Database) -> None:
    prepared: list[sa.Connection] = []
    sa.event.listen(alone.engine, "engine_connect", prepared.append)
    assert read(alone) == []
    assert len(prepared) == 1


@pytest.mark.parametrize("is_searchable", [True, False])
def test_what_is_due_with_a_request_is_done(
    instances: Instances, monkeypatch: pytest.MonkeyPatch, is_searchable: bool
) -> None:
    one = instances.start()
    *_, by_name = paths(one)["/resource_providers"]
    one.client.get(by_name)
    check_whole = kept.check
    checked: list[bool] = []

    def check(connection: sa.Connection, current: Kept) -> Kept:
        found = check_whole(connection, current)
        checked.append(connection.in_transaction())
        return found

    monkeypatch.setattr(kept, "check", check)
    one.clock.now = 2 * cache.LOOK_EVERY
    one.client.get(by_name if is_searchable else f"{by_name}%00")
    assert checked == [True]


def test_what_others_have_changed_is_followed_once(
    instances: Instances, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = instances.start()
    *_, by_name = paths(one)["/resource_providers"]
    one.client.get(by_name)
    follow = kept.follow
    followed: list[bool] = []

    def note(connection: sa.Connection, *args: Any) -> Kept:
        followed.append(connection.in_transaction())
        return follow(connection, *args)

    monkeypatch.setattr(kept, "follow", note)
    instances.start().client.make_provider()
    # There is no first query for a name that cannot be searched for.
    assert one.client.get(f"{by_name}%00") == {"resource_providers": []}
    assert followed == [True]


@pytest.mark.parametrize("seed", range(4))
def test_the_next_transaction_is_one(alone: Database, seed: int) -> None:
    """What has failed is taken back, whatever its connection was used for before."""
    rng = random.Random(seed)
    expected: list[str] = []

    def begin_and_fail(connection: sa.Connection) -> None:
        add(connection, "CUSTOM_LOST")
        ask_directly(connection, NAMES)
        raise KeyError("meant")

    kinds = ["lone", "read", "write", "fail", "missing"]
    if backends.KIND != "sqlite":
        # With SQLite, only our own transactions are any.
        kinds.append("plain")
    for number in range(60):
        kind = rng.choice(kinds)
        if kind in ("lone", "read"):
            assert read(alone, one_query=kind == "lone") == expected, (seed, number)
        elif kind == "write":
            name = f"CUSTOM_{number}"
            alone.write(functools.partial(add, name=name))
            expected.append(name)
        elif kind == "fail":
            with pytest.raises(KeyError):
                alone.write(begin_and_fail)
        elif kind == "plain":
            with pytest.raises(KeyError), alone.engine.begin() as connection:
                begin_and_fail(connection)
        else:
            with pytest.raises(Exception, match="missing") as failed:
                alone.read(
                    lambda connection: ask_directly(connection, MISSING), one_query=True
                )
            assert trouble.is_missing_table(failed.value)
    assert read(alone) == read(alone, one_query=False) == expected, seed


def describe_failure(database: Database, query: Any, *, one_query: bool) -> object:
    """Return what tells the error of a query apart, also those that it comes from."""
    with pytest.raises(Exception, match=r".") as failed:
        database.read(
            lambda connection: direct.fetch_all(
                connection, query, {"name": "\ud800"} if query is NAMED else {}
            ),
            one_query=one_query,
        )
    found: BaseException | None = failed.value
    described = []
    while found:
        described.append((type(found), type(getattr(found, "orig", None))))
        found = found.__cause__ or found.__context__
    return described


@pytest.mark.parametrize(
    "query", [MISSING, NAMED], ids=["missing table", "a surrogate"]
)
def test_its_errors_are_those_of_a_transaction(alone: Database, query: Any) -> None:
    found = describe_failure(alone, query, one_query=True)
    assert found == describe_failure(alone, query, one_query=False)
    assert read(alone) == []


@pytest.mark.skipif(backends.KIND == "sqlite", reason="it has no connections")
def test_a_lost_connection_is_replaced(alone: Database, database: Database) -> None:
    assert read(alone) == []
    backends.kill(database, alone.read(backends.session_of))
    assert read(alone) == []


def test_what_is_read_beside_a_writer_is_whole(database: Database) -> None:
    """Each write adds two rows, or removes two; nobody ever sees one of them."""
    ended, torn = threading.Event(), []

    def replace(number: int) -> None:
        def work(connection: sa.Connection) -> None:
            connection.execute(sa.delete(TRAITS).where(TRAITS.name.like("CUSTOM_%")))
            for half in "AB":
                add(connection, f"CUSTOM_{number}_{half}")

        database.write(work)

    def look() -> None:
        while not ended.is_set():
            seen = read(database)
            numbers = {each.split("_")[1] for each in seen}
            if len(seen) not in (0, 2) or len(numbers) > 1:
                torn.append(seen)

    readers = [threading.Thread(target=look) for _ in range(3)]
    for each in readers:
        each.start()
    try:
        for number in range(100):
            replace(number)
    finally:
        ended.set()
        for each in readers:
            each.join()
    assert not torn

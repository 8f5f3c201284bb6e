"""Leases on a database: they end in time and not before, whoever looks."""

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from placement import app
from placement.db import migration, models
from placement.model.lease import BATON
from placement.objects import clock, lease, leasing, locking, replacing
from placement.objects.ledger import Ledger
from placement.objects.soundness import checking
from placement.objects.transaction import Transaction
from placement_foundation.database.storage import Database
from tests import backends
from tests.client import Client, new_uuid
from tests.settings import make_config
from tests.threads import at_once


class Clock:
    """The database's clock, as far ahead as a test wants."""

    def __init__(self) -> None:
        self.ahead = 0
        self._load = clock.load_milliseconds

    def load(self, connection: sa.Connection) -> int:
        return self._load(connection) + 1000 * self.ahead


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Clock:
    hands = Clock()
    monkeypatch.setattr(clock, "load_milliseconds", hands.load)
    return hands


def claim(client: Client, provider: str, seconds: int | None = None) -> str:
    consumer = new_uuid()
    assert client.claim(consumer, {provider: {"VCPU": 1}}).status == 204
    if seconds is not None:
        assert renew(client, consumer, seconds) == 200
    return consumer


def renew(client: Client, consumer: str, seconds: int) -> int:
    path = f"/ledger/v1/leases/{consumer}"
    return client.call("PUT", path, {"seconds": seconds}).status


def test_a_lease_ends_in_time_and_not_before(
    client: Client,
    database: Database,
    hands: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    provider = client.make_provider(VCPU=9)
    for_good, short, long = (claim(client, provider, each) for each in (None, 60, 600))
    assert leasing.end_all_due(Ledger(database)) == 0
    hands.ahead = 59
    assert leasing.end_all_due(Ledger(database)) == 0
    assert client.usages(provider) == {"VCPU": 3}
    hands.ahead = 61
    with caplog.at_level(logging.INFO):
        assert leasing.end_all_due(Ledger(database)) == 1
    assert [
        record.getMessage() for record in caplog.records if "lease" in record.msg
    ] == [f"the lease of consumer {short} has ended, and its allocations"]
    assert client.usages(provider) == {"VCPU": 2}
    assert client.get(f"/allocations/{short}") == {"allocations": {}}
    assert renew(client, short, 60) == 404
    assert client.call("GET", f"/ledger/v1/leases/{short}").status == 404
    hands.ahead = 10_000
    assert leasing.end_all_due(Ledger(database)) == 1
    assert client.get(f"/allocations/{long}") == {"allocations": {}}
    assert client.get(f"/allocations/{for_good}")["allocations"]


def test_candidates_see_what_has_ended(
    client: Client, database: Database, hands: Clock
) -> None:
    provider = client.make_provider(VCPU=1)
    claim(client, provider, 60)
    query = "/allocation_candidates?resources=VCPU:1"
    assert client.get(query)["allocation_requests"] == []
    hands.ahead = 61
    leasing.end_all_due(Ledger(database))
    assert len(client.get(query)["allocation_requests"]) == 1


def test_a_renewal_before_the_end_wins(
    client: Client, database: Database, hands: Clock
) -> None:
    provider = client.make_provider(VCPU=1)
    consumer = claim(client, provider, 60)
    hands.ahead = 61
    assert renew(client, consumer, 60) == 200
    assert leasing.end_all_due(Ledger(database)) == 0
    assert client.usages(provider) == {"VCPU": 1}


def test_a_renewal_that_comes_between_is_seen(
    client: Client,
    database: Database,
    hands: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if database.engine.dialect.name == "sqlite":
        pytest.skip("it has one writer at a time")
    provider = client.make_provider(VCPU=1)
    consumer = claim(client, provider, 60)
    hands.ahead = 61
    lock = locking.lock_consumers

    def lock_late(tx: Transaction, *args: Any) -> Any:
        monkeypatch.setattr(locking, "lock_consumers", lock)
        thread = threading.Thread(target=renew, args=(client, consumer, 60))
        thread.start()
        thread.join()
        return lock(tx, *args)

    monkeypatch.setattr(locking, "lock_consumers", lock_late)
    assert leasing.end_all_due(Ledger(database)) == 0
    assert client.usages(provider) == {"VCPU": 1}


def test_renewals_that_race_with_the_end_are_told_the_truth(
    client: Client, database: Database, hands: Clock
) -> None:
    provider = client.make_provider(VCPU=100)
    consumers = [claim(client, provider, 60) for _ in range(20)]
    hands.ahead = 61
    answers: dict[str, int] = {}

    def renew_all() -> None:
        for consumer in consumers:
            answers[consumer] = renew(client, consumer, 600)

    thread = threading.Thread(target=renew_all)
    thread.start()
    ended = leasing.end_all_due(Ledger(database))
    thread.join()
    ended += leasing.end_all_due(Ledger(database))
    assert set(answers.values()) <= {200, 404}
    assert ended == list(answers.values()).count(404)
    for consumer, status in answers.items():
        there = bool(client.get(f"/allocations/{consumer}")["allocations"])
        assert there == (status == 200)


@pytest.fixture
def other_service(database: Database) -> Iterator[Database]:
    """Give the same database, as another service sees it."""
    url = database.engine.url.render_as_string(hide_password=False)
    other = backends.connect(url)
    app.build(make_config({}), other)
    yield other
    other.engine.dispose()


class Killed(BaseException):
    """A process has ended."""


def test_what_a_service_has_begun_to_end_another_one_ends(
    client: Client,
    database: Database,
    other_service: Database,
    hands: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = client.make_provider(VCPU=9)
    consumers = [claim(client, provider, 60) for _ in range(3)]
    hands.ahead = 61
    delete = replacing.delete_held

    def delete_and_die(*args: Any) -> None:
        delete(*args)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(replacing, "delete_held", delete_and_die)
        with pytest.raises(Killed):
            leasing.end_all_due(Ledger(database))
    assert client.usages(provider) == {"VCPU": 3}
    for consumer in consumers:
        assert client.call("GET", f"/ledger/v1/leases/{consumer}").status == 200
    assert leasing.end_all_due(Ledger(other_service)) == 3
    assert client.usages(provider) == {"VCPU": 0}


def test_two_services_end_each_lease_once(
    client: Client, ledger: Ledger, other_service: Database, hands: Clock
) -> None:
    provider = client.make_provider(VCPU=100)
    for _ in range(40):
        claim(client, provider, 60)
    hands.ahead = 61
    since = client.get("/ledger/v1/changes?since=now")["cursor"]
    ended = at_once(
        [
            lambda: leasing.end_all_due(ledger),
            lambda: leasing.end_all_due(Ledger(other_service, ledger.journal)),
        ]
    )
    left = leasing.end_all_due(ledger)
    assert sum(ended) + left == 40
    changes = client.get(f"/ledger/v1/changes?since={since}")["changes"]
    expired = [each["subject"] for each in changes if each["type"] == "lease.expired"]
    assert len(set(expired)) == len(expired) == 40


def test_a_consumer_that_is_deleted_and_created_again_has_no_lease(
    client: Client, database: Database, hands: Clock
) -> None:
    provider = client.make_provider(VCPU=1)
    consumer = claim(client, provider, 60)
    assert client.call("DELETE", f"/allocations/{consumer}").status == 204
    assert client.claim(consumer, {provider: {"VCPU": 1}}).status == 204
    hands.ahead = 61
    assert leasing.end_all_due(Ledger(database)) == 0


def test_the_lease_of_a_consumer_that_another_service_has_deleted_goes(
    client: Client, database: Database, hands: Clock
) -> None:
    consumer = claim(client, client.make_provider(VCPU=1), 60)

    def delete(connection: sa.Connection) -> None:
        connection.execute(sa.delete(models.Allocation))
        connection.execute(sa.delete(models.Consumer))

    database.write(delete)
    assert client.call("GET", f"/ledger/v1/leases/{consumer}").status == 404
    hands.ahead = 61
    assert leasing.end_all_due(Ledger(database)) == 0
    rows = sa.select(models.LEASES.c.consumer_id)
    with database.engine.connect() as connection:
        assert connection.scalars(rows).all() == []


def test_a_lease_is_not_that_of_a_later_consumer_with_the_same_id(
    client: Client, database: Database, hands: Clock
) -> None:
    """SQLite uses the ids of removed rows again."""
    provider = client.make_provider(VCPU=9)
    first = claim(client, provider, 60)
    later = claim(client, provider, None)

    def exchange(connection: sa.Connection) -> None:
        row = models.Consumer
        key = connection.scalar(sa.select(row.id).where(row.uuid == first))
        for uuid in (first, later):
            mine = models.Allocation.consumer_id == uuid
            if uuid == first:
                connection.execute(sa.delete(models.Allocation).where(mine))
            connection.execute(sa.delete(row).where(row.uuid == uuid))
        owner = {
            "project_id": connection.scalar(sa.select(models.Project.id)),
            "user_id": connection.scalar(sa.select(models.User.id)),
        }
        again = sa.insert(row).values(id=key, uuid=later, generation=1, **owner)
        connection.execute(again)

    database.write(exchange)
    assert client.call("GET", f"/ledger/v1/leases/{later}").status == 404
    assert client.get("/ledger/v1/leases")["leases"] == []
    with database.engine.connect() as connection:
        assert [each.rule.name for each in checking.check(connection)] == ["lease"]
    hands.ahead = 61
    leasing.end_all_due(Ledger(database))
    assert client.usages(provider) == {"VCPU": 1}
    assert renew(client, later, 60) == 200
    assert client.call("GET", f"/ledger/v1/leases/{later}").status == 200
    hands.ahead = 200
    assert leasing.end_all_due(Ledger(database)) == 1


def test_leases_are_carried_over(empty: Database) -> None:
    backends.make_placement(empty)
    client = Client(app.build(make_config({}), empty))
    consumer = claim(client, client.make_provider(VCPU=9), 60)
    with empty.engine.begin() as connection:
        row = connection.execute(sa.select(models.LEASES)).one()
        models.LEASES.drop(connection)
        old = sa.table("leases", sa.column("consumer_id"), sa.column("expires_at"))
        connection.execute(
            sa.text(
                "CREATE TABLE leases (consumer_id INT PRIMARY KEY, expires_at BIGINT)"
            )
        )
        for key in (row.consumer_id, 99_999, BATON):
            values = {"consumer_id": key, "expires_at": row.expires_at}
            connection.execute(sa.insert(old).values(values))
    migration.OWN.stamp(empty, "2d9e6b13f7a8")
    migration.SCHEMA.upgrade(empty)
    assert client.call("GET", f"/ledger/v1/leases/{consumer}").status == 200
    with empty.engine.connect() as connection:
        assert not sa.inspect(connection).has_table("leases")
        ids = connection.scalars(sa.select(models.LEASES.c.consumer_id))
        assert set(ids) == {row.consumer_id, BATON}


def test_without_the_table_only_leases_are_missing(empty: Database) -> None:
    backends.make_placement(empty)
    client = Client(app.build(make_config({}), empty))
    provider = client.make_provider(VCPU=9)
    consumer = claim(client, provider, 60)
    with empty.engine.begin() as connection:
        models.LEASES.drop(connection)
    for dry_run in (False, True):
        refused = client.place([new_uuid()], lease_seconds=60, dry_run=dry_run)
        assert refused.status == 503
        assert lease.REMEDY in refused.detail
        assert refused.code == "placement.no_leases"
        assert "placement-manage db sync" in refused.detail
        assert renew(client, consumer, 60) == 503
        assert client.get("/ledger/v1/leases") == {"leases": [], "marker": None}
        assert leasing.end_all_due(Ledger(empty)) == 0
    assert client.place([new_uuid()]).status == 201
    assert client.call("DELETE", f"/allocations/{consumer}").status == 204

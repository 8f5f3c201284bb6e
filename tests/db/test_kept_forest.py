"""What is kept between requests gives the same answers as the database.

Two instances of the service work on one database, each with what it keeps, and a third
one that keeps nothing.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from placement.db import migration, models
from placement.forest import cache
from placement.model.allocation import Claim
from placement.model.consumer import WantedConsumer
from placement.objects import change_log, database_sum, replacing
from placement.objects.ledger import Ledger
from placement.objects.transaction import Transaction
from tests import backends
from tests.client import new_uuid
from tests.instances import NOTICED_AFTER, Instance, Instances, ask
from tests.threads import at_once

HOSTS = "/allocation_candidates?resources=VCPU:1"


def free_hosts(instance: Instance, question: str = HOSTS) -> set[str]:
    """Return the providers that may give something."""
    document = instance.client.get(question)
    return {
        provider
        for candidate in document["allocation_requests"]
        for provider in candidate["allocations"]
    }


def fill(instance: Instance, host: str, amount: int = 8) -> str:
    """Let a new consumer take all of a host, and return the consumer."""
    consumer = new_uuid()
    assert instance.client.claim(consumer, {host: {"VCPU": amount}}).status == 204
    return consumer


def test_what_one_thread_has_found_another_one_does_not_forget(
    instances: Instances, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = instances.start()
    one.client.make_provider(VCPU=8)
    cache.warm_up(one.database, one.keeper)
    sums, begun = database_sum.load, list[bool]()

    def compare(connection: sa.Connection) -> Any:
        found = sums(connection)
        if not begun:
            begun.append(True)
            # A request sees more than the check beside it, and checks as well.
            one.database.write(raise_generation)
            one.clock.now += 2 * cache.LONGEST_CHECK
            at_once([lambda: free_hosts(one)])
            assert not one.keeper.is_keeping
        return found

    monkeypatch.setattr(database_sum, "load", compare)
    one.clock.now += NOTICED_AFTER
    one.keeper.watch(one.database)
    assert begun
    assert not one.keeper.is_keeping


# "db online_data_migrations" makes a provider without a root its own, whatever its
# parent.
@pytest.mark.damage
def test_a_child_with_a_root_of_its_own_is_in_the_same_tree_whatever_is_read(
    instances: Instances,
) -> None:
    one, plain = instances.start(), instances.start(keeps=False)
    host = plain.client.make_provider(VCPU=8)
    child = plain.client.make_provider(VCPU=8)
    row = models.ResourceProvider
    known = {"host": host, "child": child}
    keys = plain.database.write(
        lambda connection: {
            name: connection.scalar(sa.select(row.id).where(row.uuid == uuid))
            for name, uuid in known.items()
        }
    )
    moved = sa.update(row).where(row.uuid == child)
    moved = moved.values(parent_provider_id=keys["host"])
    plain.database.write(lambda connection: connection.execute(moved))
    questions = [HOSTS, "/resource_providers", f"/resource_providers/{child}/usages"]
    questions += [f"/resource_providers?in_tree={uuid}" for uuid in (host, child)]
    for changed in (host, child, host):
        for question in questions:
            assert ask(one, question) == ask(plain, question), question
        fill(plain, changed, 1)
        one.clock.now += 2 * NOTICED_AFTER
    for question in questions:
        assert ask(one, question) == ask(plain, question), question
    assert free_hosts(one) == {host, child}
    assert one.keeper.is_keeping


@pytest.mark.damage
def test_a_root_that_names_a_root_without_one_stops_nothing(
    instances: Instances,
) -> None:
    plain = instances.start(keeps=False)
    uuids = [plain.client.make_provider(VCPU=8) for _ in range(4)]
    row = models.ResourceProvider

    def damage(connection: sa.Connection) -> None:
        found = connection.execute(
            sa.select(row.uuid, row.id).where(row.uuid.in_(uuids))
        )
        keys = {each.uuid: each.id for each in found}
        for uuid, root in zip(uuids[:3], [*uuids[1:3], None], strict=True):
            named = sa.update(row).where(row.uuid == uuid)
            root_id = keys[root] if root else None
            connection.execute(named.values(root_provider_id=root_id))

    plain.database.write(damage)
    assert uuids[3] in free_hosts(plain)
    assert uuids[3] in str(plain.client.get("/ledger/v1/fleet"))


def raise_generation(connection: sa.Connection) -> None:
    connection.execute(sa.update(models.Inventory).values(total=16))
    connection.execute(sa.update(models.ResourceProvider).values(generation=77))


def test_without_its_table_the_service_works_and_says_once_that_it_keeps_nothing(
    instances: Instances, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = instances.start(), instances.start()
    host = one.client.make_provider(VCPU=8)
    # One instance knows the table already, the other does not.
    assert free_hosts(one) == {host}
    with one.database.engine.begin() as connection:
        models.FOREST_STAMPS.drop(connection)
        connection.execute(sa.text(f"DROP TABLE {migration.OWN.version_table}"))
    try:
        for instance in (one, other):
            fill(instance, host, 4)
        for instance in (one, other) * 2:
            assert free_hosts(instance) == set()
        assert caplog.text.count("forest_stamps is missing") == 2
    finally:
        migration.SCHEMA.upgrade(one.database)
    second = other.client.make_provider(VCPU=8)
    for instance in (one, other):
        assert free_hosts(instance) == {second}
        assert instance.keeper.is_keeping


@pytest.mark.parametrize("lost", [change_log.ROWS // 2, change_log.ROWS])
def test_while_rows_are_missing_nothing_is_kept(
    lost: int, instances: Instances, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = instances.start(), instances.start()
    hosts = [other.client.make_provider(VCPU=8)]
    assert free_hosts(one) == set(hosts)
    is_lost = models.FOREST_STAMPS.c.shard < lost
    query = sa.select(models.FOREST_STAMPS).where(is_lost)
    rows = one.database.read(
        lambda connection: [row._asdict() for row in connection.execute(query)]
    )
    gone = sa.delete(models.FOREST_STAMPS).where(is_lost)
    one.database.write(lambda connection: connection.execute(gone))
    late = instances.start()
    try:
        for instance in (one, late) * 2:
            hosts.append(other.client.make_provider(VCPU=8))
            assert free_hosts(instance) == set(hosts)
            assert not instance.keeper.is_keeping
        assert caplog.text.count("forest_stamps lacks rows") == 2
    finally:
        back = sa.insert(models.FOREST_STAMPS)
        one.database.write(lambda connection: connection.execute(back, rows))
    for instance in (one, late) * 2:
        hosts.append(other.client.make_provider(VCPU=8))
        assert free_hosts(instance) == set(hosts)
        assert instance.keeper.is_keeping


def test_a_caller_sees_its_write_at_any_instance_while_others_write(
    instances: Instances,
) -> None:
    one, other = instances.start(), instances.start()
    hosts = [one.client.make_provider(VCPU=8) for _ in range(8)]
    faults: list[Any] = []

    def work(number: int) -> None:
        # Each has two hosts of its own, and whole hosts only are taken.
        mine, yours = (one, other)[:: 1 if number % 2 else -1]
        for _ in range(6):
            for host in hosts[number * 2 : number * 2 + 2]:
                consumer = fill(mine, host)
                if host in free_hosts(yours):
                    faults.append(("taken", host))
                mine.client.call("DELETE", f"/allocations/{consumer}")
                if host not in free_hosts(yours):
                    faults.append(("free", host))

    at_once([functools.partial(work, number) for number in range(4)])
    assert not faults
    assert free_hosts(one) == free_hosts(other) == set(hosts)
    assert one.keeper.is_keeping


def test_an_answer_is_that_of_a_moment_while_it_was_asked(
    instances: Instances,
) -> None:
    one, other, writer = (instances.start() for _ in range(3))
    hosts = [writer.client.make_provider(VCPU=8) for _ in range(5)]
    consumer, moves = fill(writer, hosts[0]), 40
    begun, ended = [0], [0]
    over = threading.Event()

    def move() -> None:
        # Always from one tree to another: at each moment one host is taken.
        try:
            for step in range(1, moves + 1):
                begun.append(step)
                amounts = {hosts[step % len(hosts)]: {"VCPU": 8}}
                moved = writer.client.claim(consumer, amounts, generation=step)
                assert moved.status == 204
                ended.append(step)
        finally:
            over.set()

    def watch(instance: Instance) -> None:
        while not over.is_set():
            first = ended[-1]
            found = free_hosts(instance)
            steps = range(first, begun[-1] + 1)
            assert found in [
                set(hosts) - {hosts[step % len(hosts)]} for step in steps
            ], steps

    def check(instance: Instance) -> None:
        while not over.wait(0.01):
            instance.clock.now += cache.CHECK_EVERY
            instance.keeper.watch(instance.database)

    calls: list[Callable[[], None]] = [move]
    calls += [functools.partial(watch, each) for each in (one, other) * 2]
    calls += [functools.partial(check, each) for each in (one, other)]
    at_once(calls)
    assert ended[-1] == moves
    assert one.keeper.is_keeping
    assert other.keeper.is_keeping


@pytest.mark.skipif(
    backends.KIND == "sqlite", reason="the writers of SQLite take turns as a whole"
)
def test_claims_on_different_hosts_do_not_wait_for_each_other(
    instances: Instances,
) -> None:
    one, other = instances.start(), instances.start()
    # They are in one shard, so they would wait if it were announced before the end.
    hosts = [one.client.make_provider(VCPU=8) for _ in range(change_log.SHARDS + 1)]
    first, last = hosts[0], hosts[-1]
    answers: list[int] = []

    def claim_beside(tx: Transaction) -> None:
        claims = [claim_of(first)]
        replacing.replace_all(tx, claims, attempts=1)
        beside = threading.Thread(
            target=lambda: answers.append(
                other.client.claim(new_uuid(), {last: {"VCPU": 1}}).status
            )
        )
        beside.start()
        beside.join(20)
        assert answers == [204], "it waits until the other transaction ends"

    Ledger(one.database).write(claim_beside)
    assert sum(one.client.usages(host)["VCPU"] for host in (first, last)) == 2


def claim_of(host: str) -> Claim:
    consumer = WantedConsumer(new_uuid(), "project", "user")
    return Claim(consumer, {host: {"VCPU": 1}})

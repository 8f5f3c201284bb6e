"""What is kept between requests gives the same answers as the database.

Two instances of the service work on one database, each with what it keeps, and a third
one that keeps nothing.
"""

import functools
import os
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from placement import app
from placement.db import migration, models
from placement.forest import cache, checkpoint, forest, reading, vocabulary
from placement.forest.checkpoint import Checkpoint
from placement.model.allocation import Claim
from placement.model.consumer import WantedConsumer
from placement.model.inventory import InventoryUsage
from placement.model.tree import Provider
from placement.objects import change_log, database_sum, replacing
from placement.objects.ledger import Ledger
from placement.objects.transaction import Transaction
from placement.schemas import allocation_candidate as wire
from placement_foundation.database import storage
from placement_foundation.http import query_string
from placement_foundation.http.version import Version
from tests import backends, settings
from tests.client import Client, new_uuid
from tests.instances import NOTICED_AFTER, Instance, Instances, ask
from tests.property.cloud import AGGREGATES
from tests.statements import statements
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


def test_a_forked_process_continues_with_what_was_loaded(instances: Instances) -> None:
    one, writer = instances.start(), instances.start()
    host, other = (writer.client.make_provider(VCPU=8) for _ in range(2))
    assert free_hosts(one) == {host, other}
    for each in (one, writer):
        each.database.rest()
    with warnings.catch_warnings():
        # The test runner has threads, none of which the child needs.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        failed = 1
        try:
            with statements(one.database) as executed:
                if free_hosts(one) == {host, other} and len(executed) <= UNCHANGED:
                    fill(one, host)
                    failed = free_hosts(one) != {other}
        finally:
            os._exit(failed)
    assert os.waitpid(child, 0)[1] == 0
    assert free_hosts(one) == {other}
    assert one.keeper.is_keeping


def test_the_service_loads_the_forest_when_it_starts(
    instances: Instances, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So a server that forks afterwards shares the memory.
    writer, database = instances.start(), backends.connect(instances.url)
    host = writer.client.make_provider(VCPU=8)
    monkeypatch.setattr(storage, "connect", lambda settings: database)
    client = Client(app.start(settings.make_config()))
    with statements(database) as executed:
        assert client.get(HOSTS)["provider_summaries"].keys() == {host}
    assert len(executed) <= UNCHANGED
    database.engine.dispose()


@pytest.mark.damage
@pytest.mark.parametrize("changes_it", [False, True])
def test_what_is_changed_before_the_first_comparison_is_not_taken_for_granted(
    changes_it: bool, instances: Instances
) -> None:
    one, other = instances.start(), instances.start()
    host = one.client.make_provider(VCPU=8)
    large = "/allocation_candidates?resources=VCPU:9"
    # What is used of no inventory is in no forest: a difference that is no change.
    of_nothing = {
        "resource_provider_id": 4711,
        "resource_class_id": 0,
        "consumer_id": new_uuid(),
        "used": 1,
    }
    with one.database.engine.begin() as connection:
        connection.execute(sa.insert(models.Allocation), of_nothing)
    cache.warm_up(other.database, other.keeper)
    assert other.keeper._current
    grown = other.keeper._current.forest
    if changes_it:
        with one.database.engine.begin() as connection:
            connection.execute(sa.update(models.Inventory).values(total=16))
    for _ in range(2):
        other.clock.now += 2 * NOTICED_AFTER
        assert free_hosts(other, large) == ({host} if changes_it else set())
        kept = other.keeper._current
        # It is the same, whose memory processes share.
        assert (kept is not None and kept.forest is grown) == (not changes_it)
        assert other.keeper.is_keeping == (not changes_it)


def test_a_check_beside_requests_finds_what_was_not_recorded(
    instances: Instances,
) -> None:
    one = instances.start()
    one.client.make_provider(VCPU=8)
    free_hosts(one)
    one.database.write(raise_generation)
    one.clock.now += cache.CHECK_EVERY
    one.keeper.watch(one.database)
    assert not one.keeper.is_keeping


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


def give_back_silently(connection: sa.Connection) -> None:
    connection.execute(sa.delete(models.Allocation))


def raise_generation(connection: sa.Connection) -> None:
    connection.execute(sa.update(models.Inventory).values(total=16))
    connection.execute(sa.update(models.ResourceProvider).values(generation=77))


def associate(connection: sa.Connection) -> None:
    connection.execute(sa.insert(models.Aggregate), {"id": 1, "uuid": AGGREGATES[0]})
    providers = connection.scalars(sa.select(models.ResourceProvider.id))
    rows = [
        {"resource_provider_id": provider, "aggregate_id": 1} for provider in providers
    ]
    connection.execute(sa.insert(models.ResourceProviderAggregate), rows)


@pytest.mark.damage
@pytest.mark.parametrize("write", [give_back_silently, raise_generation, associate])
def test_unannounced_writes_of_others_are_noticed_within_seconds(
    write: Callable[[sa.Connection], None],
    instances: Instances,
    caplog: pytest.LogCaptureFixture,
) -> None:
    one, plain = instances.start(), instances.start(keeps=False)
    host = one.client.make_provider(VCPU=8)
    fill(one, host, 5)
    question = f"/allocation_candidates?resources=VCPU:1&member_of=!{AGGREGATES[0]}"
    before = ask(one, question)
    one.database.write(write)
    assert ask(one, question) == before
    one.clock.now += NOTICED_AFTER
    for _ in range(2):
        assert ask(one, question) == ask(plain, question) != before
    assert not one.keeper.is_keeping
    assert caplog.text.count("another service writes to this database") == 1


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


@pytest.mark.parametrize("most_listed", [2, 500])
def test_many_changes_at_once_are_all_seen(
    most_listed: int, instances: Instances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_LISTED_ROOTS", most_listed)
    everything: list[Checkpoint] = []
    read_all = checkpoint.read_all

    def note(*given: Any, **more: Any) -> Checkpoint:
        everything.append(read_all(*given, **more))
        return everything[-1]

    one, other = instances.start(), instances.start()
    hosts = [other.client.make_provider(VCPU=8) for _ in range(6)]
    assert free_hosts(one) == set(hosts)
    for host in hosts[:4]:
        fill(other, host)
    monkeypatch.setattr(checkpoint, "read_all", note)
    assert free_hosts(one) == set(hosts[4:])
    assert len(everything) == (most_listed == 2)
    # More than the list of one shard has room for.
    for _ in range(change_log.LONGEST // change_log.TOKEN_LENGTH):
        other.client.call("DELETE", f"/allocations/{fill(other, hosts[4])}")
    fill(other, hosts[5])
    assert free_hosts(one) == {hosts[4]}
    assert one.keeper.is_keeping
    assert len(everything) == (most_listed == 2)


def test_a_tree_that_changes_all_the_time_does_not_let_everything_be_read(
    instances: Instances, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = instances.start(), instances.start()
    busy, gone, *hosts = (other.client.make_provider(VCPU=99) for _ in range(9))
    assert free_hosts(one) == {busy, gone, *hosts}
    before = one.keeper._current
    # More than the list of its shard has room for.
    for _ in range(change_log.LONGEST // change_log.TOKEN_LENGTH):
        fill(other, busy, 1)
    assert other.client.call("DELETE", f"/resource_providers/{gone}").status == 204
    monkeypatch.setattr(checkpoint, "read_all", None)
    read: list[set[int]] = []
    load = reading.load

    def load_some(connection: sa.Connection, words: Any, roots: Any, *more: Any) -> Any:
        read.append(set(roots))
        return load(connection, words, roots, *more)

    monkeypatch.setattr(reading, "load", load_some)
    assert free_hosts(one) == {busy, *hosts}
    current = one.keeper._current
    assert current
    provider = current.forest.provider(busy)
    assert provider
    assert read == [{provider.id, provider.id + 1}]
    # The database may have been restored, so what else was derived is read anew.
    assert before
    assert current.origin is not before.origin
    assert one.keeper.is_keeping


# The start of a transaction, and what has changed.
UNCHANGED = 2


def test_a_caller_sees_its_write_at_any_instance_while_others_write(
    instances: Instances,
) -> None:
    one, other = instances.start(), instances.start()
    hosts = [one.client.make_provider(VCPU=8) for _ in range(8)]
    writing = threading.Event()
    writing.set()
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

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
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


@pytest.mark.parametrize("hosts", [20, 600])
def test_few_trees_are_looked_at_where_few_can_serve(hosts: int) -> None:
    grown = forest_of_hosts(hosts)
    for question, count in QUESTIONS.items():
        words = query_string.decode(question)
        parser = wire.QUERY.at(Version(1, 39))
        assert parser
        looked_at = list(grown.relevant(parser(words).request).trees)
        assert len(looked_at) == (hosts - 1 if count is None else count), question


# How many of some hosts may serve; None is all but one.
QUESTIONS = {
    "resources=VCPU:8": None,
    "resources=VCPU:16": 1,
    "resources=VCPU:1,DISK_GB:1": 1,
    "resources=VCPU:1&required=CUSTOM_T1": 1,
    "resources=VCPU:1&required=in:CUSTOM_T1,CUSTOM_T2": 2,
    "resources1=VCPU:1&member_of1=" + AGGREGATES[0]: 1,
    "resources=VCPU:1&root_required=CUSTOM_T1": 1,
    "resources=VCPU:1&required=!HW_COMMON": 2,
    "resources=VCPU:17": 0,
}


def forest_of_hosts(count: int) -> forest.Forest:
    """Return hosts of which the first and the last are like no other."""
    words = vocabulary.of_names({}, {})
    trees = {}
    for number in range(count):
        special = number in (0, count - 1)
        traits = {f"CUSTOM_T{1 if number else 2}"} if special else {"HW_COMMON"}
        inventories = {"VCPU": InventoryUsage(8)}
        if not number:
            inventories = {"VCPU": InventoryUsage(16), "DISK_GB": InventoryUsage(8)}
        elif special:
            inventories = {"VCPU": InventoryUsage(4)}
        provider = Provider(
            f"host{number}",
            None,
            f"host{number}",
            inventories,
            tuple(traits),
            frozenset(traits),
            frozenset(AGGREGATES[:1] if number == 3 else ()),
            0,
            1,
        )
        trees[number + 1] = reading.tree_of([provider])
    return forest.forest_of(words, trees)

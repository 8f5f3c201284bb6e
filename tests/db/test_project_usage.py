"""What is kept of the usages of projects gives the same answers as the database.

That holds after random writes, too: see test_kept_forest.py.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from placement.db import models
from placement.forest import project_usage
from placement.objects import change_log, online_migration
from tests import backends
from tests.client import Client, new_uuid, wants
from tests.instances import Backup, Instance, Instances, ask
from tests.statements import statements
from tests.threads import at_once

PROJECT = "project"
USAGES = f"/usages?project_id={PROJECT}"
# What lets an instance follow changes, but not what projects use.
CANDIDATES = "/allocation_candidates?resources=VCPU:1"
# The start of a transaction, and the newest tokens.
UNCHANGED = 2
# What the forest needs to be brought up to date.
CHANGED = UNCHANGED + 3


def take(client: Client, *hosts: str, **attributes: Any) -> str:
    """Let a consumer of the project take 1 VCPU of hosts; return the consumer."""
    consumer = attributes.pop("consumer", None) or new_uuid()
    amounts = {host: {"VCPU": 1} for host in hosts}
    body = wants(amounts, **{"project": PROJECT, **attributes})
    assert client.call("PUT", f"/allocations/{consumer}", body).status == 204
    return consumer


def used(instance: Instance, kind: str = "INSTANCE") -> tuple[int, int]:
    """Return how many consumers of a type use how many VCPU, as an instance says."""
    found = instance.client.get(USAGES)["usages"].get(kind, {})
    return found.get("consumer_count", 0), found.get("VCPU", 0)


def is_kept(instance: Instance) -> bool:
    """Return whether an instance keeps what any project uses."""
    return any(instance.context.project_usages.kept.values())


def ask_until_kept(instance: Instance, question: str = USAGES) -> None:
    for _ in range(2):
        ask(instance, question)
    assert is_kept(instance)


def test_what_has_not_changed_is_not_read_again(instances: Instances) -> None:
    one = instances.start()
    host = one.client.make_provider(VCPU=8)
    for _ in range(3):
        take(one.client, host)
    ask_until_kept(one)
    with statements(one.database) as executed:
        assert used(one) == (3, 3)
    assert len(executed) <= UNCHANGED


def test_however_many_trees_have_changed_their_shares_take_one_statement(
    instances: Instances,
) -> None:
    one, other = instances.start(), instances.start()
    hosts = [other.client.make_provider(VCPU=8) for _ in range(20)]
    take(other.client, *hosts)
    ask_until_kept(one)
    counts = []
    for some in (hosts[:1], hosts[1:]):
        for host in some:
            take(other.client, host)
        with statements(one.database) as executed:
            used(one)
        counts.append(len(executed))
    assert used(one) == (21, 40)
    assert counts[0] == counts[1] <= CHANGED + 1


def test_a_consumer_of_several_trees_counts_once(instances: Instances) -> None:
    one, other = instances.start(), instances.start()
    hosts = [other.client.make_provider(VCPU=8) for _ in range(3)]
    consumer = take(other.client, *hosts)
    ask_until_kept(one)
    assert used(one) == (1, 3)
    take(other.client, hosts[0], consumer=consumer, generation=1)
    assert used(one) == (1, 1)
    take(other.client, *hosts[1:], consumer=consumer, generation=2)
    assert used(one) == (1, 2)
    other.client.call("DELETE", f"/allocations/{consumer}")
    assert used(one) == (0, 0)
    assert one.client.get(USAGES) == {"usages": {}}


def test_a_consumer_takes_its_usages_to_another_owner_and_type(
    instances: Instances,
) -> None:
    one, other = instances.start(), instances.start()
    hosts = [other.client.make_provider(VCPU=8) for _ in range(2)]
    consumer = take(other.client, *hosts)
    take(other.client, hosts[0], user="another", consumer_type="MIGRATION")
    questions = [USAGES, f"{USAGES}&user_id=another", "/usages?project_id=elsewhere"]
    for question in questions:
        ask_until_kept(one, question)
    plain = instances.start(keeps=False)
    changes: list[dict[str, Any]] = [
        {"user": "another"},
        {"consumer_type": "MIGRATION"},
        {"project": "elsewhere"},
        {},
    ]
    for generation, attributes in enumerate(changes, start=1):
        take(
            other.client,
            *hosts,
            consumer=consumer,
            generation=generation,
            **attributes,
        )
        for question in questions:
            assert ask(one, question) == ask(plain, question)
    assert (used(one), used(one, "MIGRATION")) == ((1, 2), (1, 1))


def test_a_provider_takes_its_usages_to_another_tree(instances: Instances) -> None:
    one, other = instances.start(), instances.start()
    host, root = (other.client.make_provider(VCPU=8) for _ in range(2))
    consumer = take(other.client, host)
    take(other.client, host, root)
    ask_until_kept(one)
    for parent in (root, None):
        body = {"name": host, "parent_provider_uuid": parent}
        path = f"/resource_providers/{host}"
        assert other.client.call("PUT", path, body).status == 200
        assert used(one) == (2, 3)
    other.client.call("DELETE", f"/allocations/{consumer}")
    assert used(one) == (1, 2)


def test_a_renamed_class_has_its_new_name(instances: Instances) -> None:
    one, other = instances.start(), instances.start()
    assert other.client.call("PUT", "/resource_classes/CUSTOM_OLD").status == 201
    host = other.client.make_provider(CUSTOM_OLD=8)
    body = wants({host: {"CUSTOM_OLD": 1}}, project=PROJECT)
    assert other.client.call("PUT", f"/allocations/{new_uuid()}", body).status == 204
    ask_until_kept(one)
    path, name = "/resource_classes/CUSTOM_OLD", {"name": "CUSTOM_NEW"}
    assert other.client.call("PUT", path, name, "1.6").status == 200
    amounts = {"consumer_count": 1, "CUSTOM_NEW": 1}
    assert one.client.get(USAGES) == {"usages": {"INSTANCE": amounts}}


def test_a_database_that_was_restored_is_noticed(instances: Instances) -> None:
    one = instances.start()
    host = one.client.make_provider(VCPU=8)
    take(one.client, host)
    tables = (models.Allocation, models.Consumer, models.FOREST_STAMPS)
    backup = Backup(one.database, *tables)
    take(one.client, host)
    ask_until_kept(one)
    assert used(one) == (2, 2)
    backup.restore()
    assert used(one) == (1, 1)


def test_a_thread_with_an_older_moment_sees_that_moment(instances: Instances) -> None:
    one, writer = instances.start(), instances.start()
    host = writer.client.make_provider(VCPU=8)
    take(writer.client, host)
    ask_until_kept(one)

    def look_late(connection: sa.Connection) -> Any:
        # The moment of this transaction is that of its first statement.
        connection.execute(sa.text("SELECT count(*) FROM traits"))
        take(writer.client, host)
        assert used(one) == (2, 2)
        return one.context.project_usages.by_consumer_type(connection, PROJECT)

    late = one.database.read(look_late)["INSTANCE"]
    assert (late.consumer_count, late.amounts) == (1, {"VCPU": 1})
    assert used(one) == (2, 2)


def test_an_answer_is_that_of_a_moment_while_it_was_asked(
    instances: Instances,
) -> None:
    one, other, writer = (instances.start() for _ in range(3))
    hosts = [writer.client.make_provider(VCPU=100) for _ in range(5)]
    take(writer.client, hosts[0])
    for instance in (one, other):
        ask_until_kept(instance)
    begun, ended, claims = [1], [1], 30
    over = threading.Event()

    def claim() -> None:
        try:
            for number in range(1, claims + 1):
                begun.append(number + 1)
                take(writer.client, hosts[number % len(hosts)])
                ended.append(number + 1)
        finally:
            over.set()

    def watch(instance: Instance) -> None:
        while not over.is_set():
            first = ended[-1]
            count, amount = used(instance)
            assert first <= count == amount <= begun[-1]

    calls: list[Callable[[], None]] = [claim]
    calls += [functools.partial(watch, each) for each in (one, other) * 2]
    at_once(calls)
    assert used(one) == used(other) == (claims + 1, claims + 1)


@pytest.mark.damage
def test_while_the_forest_is_not_trusted_nothing_is_kept(instances: Instances) -> None:
    one = instances.start()
    host = one.client.make_provider(VCPU=8)
    take(one.client, host)
    ask_until_kept(one)
    one.database.write(
        lambda connection: connection.execute(sa.delete(models.Allocation))
    )
    assert used(one) == (1, 1)
    one.clock.now += 10
    assert used(one) == (0, 0)
    assert not is_kept(one)


def test_the_first_request_about_a_project_is_left_to_the_database(
    instances: Instances,
) -> None:
    one = instances.start()
    take(one.client, one.client.make_provider(VCPU=8))
    assert [(used(one), is_kept(one)) for _ in range(2)] == [
        ((1, 1), False),
        ((1, 1), True),
    ]


@pytest.mark.parametrize("limit", ["MOST_READ", "MOST_ALLOCATIONS"])
def test_the_database_sums_up_what_is_too_much_to_read(
    limit: str, instances: Instances, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = instances.start(), instances.start()
    host = other.client.make_provider(VCPU=80)
    for _ in range(3):
        take(other.client, host)
    ask_until_kept(one)
    monkeypatch.setattr(project_usage, limit, 3)
    # Those of other projects have to be read, but they are not kept.
    take(other.client, host, project=PROJECT if limit != "MOST_READ" else "another")
    assert used(one) == ask_plainly(instances)
    assert not is_kept(one)
    monkeypatch.setattr(project_usage, limit, 1000)
    ask_until_kept(one)
    assert used(one) == ask_plainly(instances)


@pytest.mark.parametrize("most", [2, 3])
def test_the_database_sums_up_if_too_many_trees_have_changed(
    most: int, instances: Instances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_usage, "MOST_LISTED_ROOTS", most)
    one, other = instances.start(), instances.start()
    hosts = [other.client.make_provider(VCPU=8) for _ in range(3)]
    take(other.client, hosts[0])
    ask_until_kept(one)
    for host in hosts:
        take(other.client, host)
    assert used(one) == (4, 4)
    assert is_kept(one) == (most == 3)


def ask_plainly(instances: Instances) -> tuple[int, int]:
    return used(instances.start(keeps=False))


@pytest.mark.parametrize("limit", ["MOST_OWNERS", "MOST_ALLOCATIONS"])
def test_what_was_not_asked_for_longest_goes(
    limit: str, instances: Instances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_usage, limit, 2)
    one = instances.start()
    host = one.client.make_provider(VCPU=8)
    projects = [f"project{number}" for number in range(3)]
    first, second, third = (f"/usages?project_id={project}" for project in projects)
    for project in projects:
        take(one.client, host, project=project)
    for question in (first, second, first, third):
        ask_until_kept(one, question)
    kept = one.context.project_usages.kept
    assert [owner for owner, _ in kept if kept[owner, _]] == [projects[0], projects[2]]
    for question in (first, third):
        with statements(one.database) as executed:
            assert ask(one, question)["usages"]["INSTANCE"]["VCPU"] == 1
        assert len(executed) <= UNCHANGED


@pytest.fixture
def three(instances: Instances) -> tuple[Instance, Instance, Instance]:
    """Give two instances, and one that keeps nothing."""
    return instances.start(), instances.start(), instances.start(keeps=False)


def test_consumers_that_a_migration_adds_are_seen(
    three: tuple[Instance, Instance, Instance],
) -> None:
    one, other, plain = three
    host = other.client.make_provider(VCPU=8)
    take(other.client, host)
    lost = models.Consumer.uuid == take(other.client, host)
    plain.database.write(lambda connection: forget_consumers(connection, lost))
    ask_until_kept(one)
    plain.database.write(
        lambda connection: online_migration.create_incomplete_consumers(
            connection, 10, project=PROJECT, user="user"
        )
    )
    assert ask(one, USAGES) == ask(plain, USAGES)
    assert used(one, "unknown") == (1, 1)


def forget_consumers(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> None:
    connection.execute(sa.delete(models.Consumer).where(condition))


@pytest.mark.damage
@pytest.mark.parametrize("column", ["resource_class_id", "resource_provider_id"])
def test_what_belongs_to_nothing_counts_as_in_the_database(
    column: str, three: tuple[Instance, Instance, Instance]
) -> None:
    one, other, plain = three
    if backends.KIND != "sqlite" and column == "resource_provider_id":
        pytest.skip("a provider without a root is enough elsewhere")
    take(other.client, other.client.make_provider(VCPU=8))
    change = sa.update(models.Allocation).values({column: 99_999})
    plain.database.write(lambda connection: connection.execute(change))
    for _ in range(3):
        assert ask(one, USAGES) == ask(plain, USAGES)


@pytest.mark.damage
def test_a_provider_without_a_root_is_left_to_the_database(
    three: tuple[Instance, Instance, Instance],
) -> None:
    one, other, plain = three
    take(other.client, other.client.make_provider(VCPU=8))
    change = sa.update(models.ResourceProvider).values(root_provider_id=None)
    plain.database.write(lambda connection: connection.execute(change))
    for _ in range(3):
        assert ask(one, USAGES) == ask(plain, USAGES)
    assert used(one) == (1, 1)
    assert not is_kept(one)


@pytest.mark.parametrize("column", ["project_id", "consumer_type_id"])
def test_consumers_changed_by_sql_are_seen_in_time(
    column: str,
    three: tuple[Instance, Instance, Instance],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, other, plain = three
    hosts = [other.client.make_provider(VCPU=8) for _ in range(2)]
    like = take(other.client, hosts[0], consumer_type="NEW", project="another")
    changed = take(other.client, *hosts)
    ask_until_kept(one)
    consumer = models.Consumer
    value = sa.select(getattr(consumer, column)).where(consumer.uuid == like)
    with plain.database.engine.begin() as connection:
        change = sa.update(consumer).where(consumer.uuid == changed)
        connection.execute(change.values({column: connection.scalar(value)}))
    # One of its trees is read again.
    take(other.client, hosts[0], project="another")
    ask(one, USAGES)
    monkeypatch.setattr(project_usage, "READ_AGAIN", -1)
    assert ask(one, USAGES) == ask(plain, USAGES)


def test_all_is_read_again_when_rows_were_missing(
    three: tuple[Instance, Instance, Instance],
) -> None:
    one, other, plain = three
    host, another = other.client.make_provider(VCPU=8), "/usages?project_id=another"
    for project in (PROJECT, "another"):
        take(other.client, host, project=project)
    for question in (USAGES, another):
        ask_until_kept(one, question)
    backup = Backup(plain.database, models.FOREST_STAMPS)
    gone = sa.delete(models.FOREST_STAMPS)
    plain.database.write(lambda connection: connection.execute(gone))
    take(other.client, host, project="another")
    ask(one, USAGES)
    backup.restore()
    assert ask(one, another) == ask(plain, another)


def test_all_is_read_again_when_a_class_is_renamed(
    three: tuple[Instance, Instance, Instance],
) -> None:
    one, other, plain = three
    assert other.client.call("PUT", "/resource_classes/CUSTOM_OLD").status == 201
    host = other.client.make_provider(VCPU=8)
    take(other.client, host)
    lost = take(other.client, host)
    ask_until_kept(one)
    with plain.database.engine.begin() as connection:
        allocations = models.Allocation.consumer_id == lost
        connection.execute(sa.delete(models.Allocation).where(allocations))
        forget_consumers(connection, models.Consumer.uuid == lost)
    path, name = "/resource_classes/CUSTOM_OLD", {"name": "CUSTOM_NEW"}
    assert other.client.call("PUT", path, name, "1.6").status == 200
    assert used(one) == (1, 1)


# As many as the list of a shard has no room for, or none.
@pytest.mark.parametrize("lost", [0, change_log.LONGEST // change_log.TOKEN_LENGTH])
def test_a_restored_database_may_give_the_id_of_a_project_to_another_one(
    lost: int, three: tuple[Instance, Instance, Instance]
) -> None:
    one, other, plain = three
    hosts = [other.client.make_provider(VCPU=8) for _ in range(2)]
    allocations, provider = models.Allocation, models.ResourceProvider
    tables = (allocations, models.Consumer, models.Project, models.FOREST_STAMPS)
    backup = Backup(plain.database, *tables)
    generations = sa.select(provider.id, provider.generation)
    with plain.database.engine.begin() as connection:
        before = connection.execute(generations).all()
    take(other.client, hosts[0])
    ask_until_kept(one)
    ours = sa.select(models.Project.id).where(models.Project.external_id == PROJECT)
    with plain.database.engine.begin() as connection:
        row_id = connection.scalar(ours)
    for _ in range(lost):
        consumer = take(other.client, hosts[0])
        assert other.client.call("DELETE", f"/allocations/{consumer}").status == 204
    if lost:
        ask(one, CANDIDATES)
    backup.restore()
    with plain.database.engine.begin() as connection:
        for provider_id, generation in before:
            update = sa.update(provider).where(provider.id == provider_id)
            connection.execute(update.values(generation=generation))
        # The id that the restored counter gives to the next project.
        again = {"id": row_id, "external_id": "another"}
        connection.execute(sa.insert(models.Project), again)
    if lost:
        ask(one, CANDIDATES)
    take(other.client, hosts[1], project="another")
    for _ in range(3):
        assert ask(one, USAGES) == ask(plain, USAGES) == {"usages": {}}

"""What is kept is right, or not used, whatever other programs write to the database."""

import random
import time
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from placement import app, measure
from placement.db.models import (
    FOREST_STAMPS,
    Allocation,
    Consumer,
    Inventory,
    ResourceClass,
    ResourceProvider,
    ResourceProviderTrait,
    Trait,
)
from placement.forest import cache
from placement_foundation.database import storage
from placement_foundation.observing import telemetry
from tests import backends, settings, threads
from tests.client import Client, new_uuid
from tests.db.test_kept_forest import HOSTS, UNCHANGED, fill, free_hosts
from tests.instances import NOTICED_AFTER, Backup, Instance, Instances, ask
from tests.property.cloud import Writer
from tests.property.foreign import ForeignWriter
from tests.statements import statements

PROVIDERS = "/resource_providers"


def keeps(instance: Instance) -> bool:
    return instance.keeper.is_keeping


def examine(instance: Instance) -> None:
    """Do all that is done in the background, as far as it is due."""
    instance.keeper.watch(instance.database)
    instance.keeper.read_again(instance.database)


def be_quiet(instance: Instance) -> None:
    """Let so much time go by that the forest is kept again."""
    instance.clock.now += cache.QUIET
    examine(instance)
    assert keeps(instance)


def test_every_write_of_another_service_is_noticed_within_seconds(
    instances: Instances,
) -> None:
    one, plain = instances.start(), instances.start(keeps=False)
    seed = random.randrange(10**6)
    print("seed", seed)
    rng = random.Random(seed)
    writer, foreign = Writer(rng, [one.client]), ForeignWriter(rng, plain.database)
    for _ in range(25):
        writer.write()
    # There is enough for most acts to change something.
    for _ in range(6):
        writer.add_provider()
    noticed = set()
    for _ in range(40):
        writer.write()
        ask(one, PROVIDERS)
        # Nothing of our own is mistaken for another service's.
        one.clock.now += NOTICED_AFTER
        free_hosts(one)
        assert keeps(one)
        act = foreign.write()
        if act is None:
            continue
        one.clock.now += NOTICED_AFTER
        questions = [writer.question() for _ in range(2)]
        questions += [writer.question_about_one_provider() for _ in range(2)]
        for question in (PROVIDERS, *questions):
            assert ask(one, question) == ask(plain, question), (seed, act, question)
        free_hosts(one)
        assert not keeps(one), (seed, act)
        noticed.add(act)
        be_quiet(one)
    assert len(noticed) >= 6, noticed


class ForeignWriterOnce(ForeignWriter):
    """Does one act."""

    def __init__(self, instance: Instance) -> None:
        super().__init__(random.Random(1), instance.database)

    def run(self, act: str) -> None:
        with self.database.engine.begin() as self.connection:
            assert getattr(self, act)()


def test_a_host_that_was_replaced_is_not_offered_any_more(
    instances: Instances,
) -> None:
    one = instances.start()
    host = one.client.make_provider(VCPU=8)
    assert free_hosts(one) == {host}
    ForeignWriterOnce(one).run("replace_provider")
    one.clock.now += NOTICED_AFTER
    [new] = free_hosts(one)
    assert new != host
    fill(one, new)


def change_total(connection: sa.Connection) -> None:
    connection.execute(sa.update(Inventory).values(total=3))


def change_ratio(connection: sa.Connection) -> None:
    connection.execute(sa.update(Inventory).values(allocation_ratio=0.5))


def delete_inventory(connection: sa.Connection) -> None:
    first = connection.scalar(sa.select(sa.func.min(Inventory.id)))
    connection.execute(sa.delete(Inventory).where(Inventory.id == first))


def exchange_providers(model: type) -> Callable[[sa.Connection], None]:
    """Return a change that moves a row to the other provider, among two."""

    def move(connection: sa.Connection) -> None:
        held = model.resource_provider_id  # type: ignore[attr-defined]
        [mine] = connection.scalars(sa.select(held))
        providers = sa.select(ResourceProvider.id).where(ResourceProvider.id != mine)
        other = connection.scalar(providers)
        connection.execute(sa.update(model).values(resource_provider_id=other))

    return move


def rename_class(connection: sa.Connection) -> None:
    custom = ResourceClass.name == "CUSTOM_GOLD"
    connection.execute(
        sa.update(ResourceClass).where(custom).values(name="CUSTOM_LEAD")
    )


def rename_trait(connection: sa.Connection) -> None:
    custom = Trait.name == "CUSTOM_T1"
    connection.execute(sa.update(Trait).where(custom).values(name="CUSTOM_T9"))


def rename_provider(connection: sa.Connection) -> None:
    first = connection.scalar(sa.select(sa.func.min(ResourceProvider.id)))
    is_first = ResourceProvider.id == first
    connection.execute(sa.update(ResourceProvider).where(is_first).values(name="new"))


BY_HAND = {
    "total": change_total,
    "ratio": change_ratio,
    "inventory": delete_inventory,
    "trait moved": exchange_providers(ResourceProviderTrait),
    "allocation moved": exchange_providers(Allocation),
    "class renamed": rename_class,
    "trait renamed": rename_trait,
    "provider renamed": rename_provider,
}
QUESTIONS = (
    "/allocation_candidates?resources=VCPU:4",
    "/allocation_candidates?resources=VCPU:1&required=CUSTOM_T1",
    "/allocation_candidates?resources=CUSTOM_GOLD:1",
    PROVIDERS,
)


class Counts(telemetry.Observer):
    def __init__(self) -> None:
        self.found_by: list[str] = []

    def record(self, measured, amount, labels) -> None:  # type: ignore[no-untyped-def]
        if measured is measure.FOREST_CORRECTIONS:
            self.found_by.append(labels["found_by"])


@pytest.fixture
def cloud(instances: Instances) -> tuple[Instance, Instance]:
    """Give a service that keeps a small cloud, and one that keeps nothing."""
    one, plain = instances.start(), instances.start(keeps=False)
    client = one.client
    for path in ("/resource_classes/CUSTOM_GOLD", "/traits/CUSTOM_T1"):
        assert client.call("PUT", path).status in (201, 204)
    hosts = [client.make_provider(VCPU=8, CUSTOM_GOLD=2) for _ in range(2)]
    body = {"resource_provider_generation": 1, "traits": ["CUSTOM_T1"]}
    path = f"/resource_providers/{hosts[0]}/traits"
    assert client.call("PUT", path, body).status == 200
    fill(one, hosts[0], 5)
    return one, plain


@pytest.mark.damage
@pytest.mark.parametrize("change", BY_HAND.values(), ids=BY_HAND)
def test_what_is_written_by_hand_is_noticed_by_reading_alone(
    change: Callable[[sa.Connection], None],
    cloud: tuple[Instance, Instance],
    caplog: pytest.LogCaptureFixture,
) -> None:
    one, plain = cloud
    counts = Counts()
    telemetry.add(counts)
    try:
        for question in QUESTIONS:
            assert ask(one, question) == ask(plain, question)
        examine(one)
        assert not counts.found_by
        plain.database.write(change)
        # No time goes by, so requests do not check.
        assert any(ask(one, each) != ask(plain, each) for each in QUESTIONS)
        examine(one)
        for question in QUESTIONS:
            assert ask(one, question) == ask(plain, question)
        examine(one)
    finally:
        telemetry.remove(counts)
    assert counts.found_by == ["reading"]
    assert caplog.text.count("without a record of it") == 1
    assert keeps(one)


def test_the_forest_is_kept_again_when_the_other_service_has_been_quiet(
    cloud: tuple[Instance, Instance], caplog: pytest.LogCaptureFixture
) -> None:
    one, plain = cloud
    free_hosts(one)
    for total in (20, 30):
        for number in range(3):
            change = sa.update(Inventory).values(total=total + number)
            with plain.database.engine.begin() as connection:
                connection.execute(change)
            one.clock.now += cache.QUIET - 1
            for question in QUESTIONS:
                assert ask(one, question) == ask(plain, question)
            examine(one)
            assert not keeps(one)
        one.clock.now += cache.QUIET - 1
        # What is recorded meanwhile does not count.
        host = plain.client.make_provider(VCPU=8)
        examine(one)
        assert not keeps(one)
        one.clock.now += cache.CHECK_EVERY
        examine(one)
        assert keeps(one)
        assert host in free_hosts(one)
        with statements(one.database) as executed:
            free_hosts(one)
        assert len(executed) <= UNCHANGED
    assert caplog.text.count("another service writes to this database") == 2


def test_while_nothing_is_recorded_the_forest_is_not_kept_again(
    cloud: tuple[Instance, Instance],
) -> None:
    one, plain = cloud
    free_hosts(one)
    plain.database.write(change_total)
    one.clock.now += NOTICED_AFTER
    free_hosts(one)
    backup = Backup(plain.database, FOREST_STAMPS)
    gone = sa.delete(FOREST_STAMPS)
    plain.database.write(lambda connection: connection.execute(gone))
    one.clock.now += cache.QUIET
    examine(one)
    assert not keeps(one)
    backup.restore()
    examine(one)
    assert not keeps(one)
    be_quiet(one)


def test_allocations_without_an_inventory_are_nothing_to_be_afraid_of(
    cloud: tuple[Instance, Instance], caplog: pytest.LogCaptureFixture
) -> None:
    one, plain = cloud
    host = one.client.make_provider(VCPU=8, DISK_GB=8)
    consumer = fill(one, host, 1)
    plain.database.write(
        lambda connection: connection.execute(
            sa.delete(Inventory).where(
                Inventory.resource_provider_id
                == sa.select(ResourceProvider.id)
                .where(ResourceProvider.uuid == host)
                .scalar_subquery()
            )
        )
    )
    examine(one)
    free_hosts(one)
    assert keeps(one)
    assert one.client.call("DELETE", f"/allocations/{consumer}").status == 204
    for _ in range(2):
        one.clock.now += NOTICED_AFTER
        for question in QUESTIONS:
            assert ask(one, question) == ask(plain, question)
        examine(one)
        assert keeps(one)
    assert "another service writes" not in caplog.text


@pytest.mark.parametrize("writes_between", [False, True])
def test_a_restored_moment_is_kept_after_the_first_request(
    writes_between: bool, cloud: tuple[Instance, Instance]
) -> None:
    one, plain = cloud
    hosts = [one.client.make_provider(VCPU=8) for _ in range(3)]
    tables = (
        Allocation,
        Consumer,
        FOREST_STAMPS,
    )
    backup = Backup(plain.database, *tables)
    for host in hosts:
        fill(one, host)
    assert ask(one, QUESTIONS[0]) == ask(plain, QUESTIONS[0])
    backup.restore()
    if writes_between:
        # The list of one shard goes on from there, those of others look older.
        fill(plain, hosts[0])
    for attempt in range(3):
        with statements(one.database) as executed:
            answer = ask(one, QUESTIONS[0])
        assert answer == ask(plain, QUESTIONS[0])
        assert len(executed) <= UNCHANGED or not attempt
    assert keeps(one)
    # What a project uses is of that moment as well.
    usages = "/usages?project_id=project"
    for _ in range(4):
        assert ask(one, usages) == ask(plain, usages)


def test_each_process_compares_in_the_background(
    instances: Instances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "READ_EVERY", 0.01)
    writer, database = instances.start(keeps=False), backends.connect(instances.url)
    host = writer.client.make_provider(VCPU=8)
    monkeypatch.setattr(storage, "connect", lambda settings: database)

    def see_another_change() -> None:
        client = Client(app.start(settings.make_config()))
        # Requests do not look.
        monkeypatch.setattr(cache, "CHECK_EVERY", 1e9)
        assert client.get(HOSTS)["provider_summaries"].keys() == {host}
        writer.database.write(change_total)
        deadline = time.monotonic() + 60
        question = "/allocation_candidates?resources=VCPU:4"
        while client.get(question)["provider_summaries"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    try:
        with threads.ended():
            see_another_change()
    finally:
        database.engine.dispose()


def test_usages_follow_a_consumer_that_is_given_to_another_project(
    instances: Instances,
) -> None:
    one = instances.start()
    moving, other = new_uuid(), new_uuid()
    provider = one.client.make_provider(VCPU=20)
    for consumer, project in ((moving, "p"), (other, "q")):
        answer = one.client.claim(consumer, {provider: {"VCPU": 2}}, project=project)
        assert answer.status == 204
    before = one.client.get("/usages?project_id=q")["usages"]
    assert before["INSTANCE"] == {"consumer_count": 1, "VCPU": 2}
    projects = sa.select(Consumer.project_id).where(Consumer.uuid == other)
    with one.database.engine.begin() as connection:
        values = {"project_id": connection.scalar(projects)}
        moved = sa.update(Consumer).where(Consumer.uuid == moving).values(values)
        connection.execute(moved)
    after = one.client.get("/usages?project_id=q")["usages"]
    assert after["INSTANCE"] == {"consumer_count": 2, "VCPU": 4}
    assert one.client.get("/usages?project_id=p")["usages"] == {}

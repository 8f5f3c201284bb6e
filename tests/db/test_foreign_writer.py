"""What is kept is right, or not used, whatever other programs write to the database."""

import time
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from placement import app, measure
from placement.db.models import (
    FOREST_STAMPS,
    Inventory,
    ResourceClass,
    ResourceProvider,
    Trait,
)
from placement.forest import cache
from placement_foundation.database import storage
from placement_foundation.observing import telemetry
from tests import backends, settings, threads
from tests.client import Client
from tests.db.test_kept_forest import HOSTS, fill, free_hosts
from tests.instances import NOTICED_AFTER, Backup, Instance, Instances, ask

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


def change_total(connection: sa.Connection) -> None:
    connection.execute(sa.update(Inventory).values(total=3))


def change_ratio(connection: sa.Connection) -> None:
    connection.execute(sa.update(Inventory).values(allocation_ratio=0.5))


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
    "ratio": change_ratio,
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

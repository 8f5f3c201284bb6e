"""What a process has written itself it does not read again, and has it exactly."""

import functools
import random
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from placement.forest import kept, own_change
from placement.forest.own_change import OwnChanges
from placement.model.tree import Tree
from placement_foundation.database.storage import Database
from placement_foundation.database.trouble import LostRaceError
from tests import backends
from tests.client import new_uuid
from tests.instances import Instance, Instances
from tests.statements import statements
from tests.threads import at_once

FREE = "/allocation_candidates?resources=VCPU:1"
# The beginning of the statement that reads trees.
READS = "WITH few AS"
# PostgreSQL returns what a write has made of a provider.
RETURNS = backends.KIND == "postgresql"


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give the roots of the trees that were known, and not read."""
    find, roots = OwnChanges.find, list[int]()

    def watch(self: OwnChanges, *args: Any) -> dict[int, Tree]:
        trees = find(self, *args)
        roots.extend(trees)
        return trees

    monkeypatch.setattr(OwnChanges, "find", watch)
    return roots


def place(
    instance: Instance, number: int = 1, query: str = "resources=VCPU:1"
) -> list[str]:
    """Place new consumers, and return them."""
    consumers = [new_uuid() for _ in range(number)]
    answer = instance.client.place(consumers, query, at_least=1)
    # 409: there is no room for any.
    assert answer.status in (201, 409), answer
    placed = answer.document["placements"] if answer.status == 201 else ()
    return [each["consumer"] for each in placed]


def is_exact(instance: Instance) -> bool:
    """Return whether an instance keeps exactly what the database has."""

    def compare(connection: sa.Connection) -> bool:
        current = instance.keeper.load(connection)
        assert current
        roots = list(current.forest.roots_from(0))
        return kept.is_exact(connection, current, roots)

    return instance.database.read(compare)


def test_own_placements_are_not_read_again(instances: Instances) -> None:
    one, other = instances.start(), instances.start()
    host = one.client.make_provider(VCPU=8)
    place(one)
    for instance in (one, other):
        instance.client.get(FREE)
    place(one, 2)
    for instance, is_known in ((one, RETURNS), (other, False)):
        with statements(instance.database) as executed:
            document = instance.client.get(FREE)
        assert document["provider_summaries"][host]["resources"]["VCPU"]["used"] == 3
        assert len([each for each in executed if READS in each]) == (not is_known)
        assert is_exact(instance)


def test_what_others_have_changed_since_is_read(
    instances: Instances, found: list[int]
) -> None:
    one, other = instances.start(), instances.start()
    one.client.make_provider(VCPU=8)
    place(one)
    for instance in (one, other):
        instance.client.get(FREE)
    found.clear()
    (consumer,) = place(one)
    # It goes without a new generation of the provider.
    assert other.client.call("DELETE", f"/allocations/{consumer}").status == 204
    assert is_exact(one)
    place(one)
    place(other)
    assert is_exact(one)
    assert not found
    assert is_exact(other)


def test_a_write_that_failed_has_changed_nothing(instances: Instances) -> None:
    one = instances.start()
    one.client.make_provider(VCPU=8)
    place(one)
    failed = fail_next_write(one.database)
    assert len(place(one)) == 1
    assert failed == [True]
    assert is_exact(one)
    # Nor is the second attempt noted, which does not rely on what was read before.
    assert len(one.keeper.own_changes._known) == (1 if RETURNS else 0)


def fail_next_write(database: Database) -> list[bool]:
    """Make the next commit of a write lose a race; return whether it has."""
    failed: list[bool] = []
    writing: set[sa.Connection] = set()

    def watch(
        connection: sa.Connection, cursor: object, statement: str, *more: object
    ) -> None:
        if "UPDATE forest_stamps" in statement:
            writing.add(connection)

    def lose(connection: sa.Connection) -> None:
        if connection in writing and not failed:
            failed.append(True)
            connection.connection.rollback()
            raise LostRaceError

    sa.event.listen(database.engine, "before_cursor_execute", watch)
    sa.event.listen(database.engine, "commit", lose)
    return failed


def test_inventories_are_in_the_order_that_they_have_now(
    instances: Instances,
) -> None:
    one, other = instances.start(), instances.start()
    for name in ("CUSTOM_A", "CUSTOM_B"):
        assert one.client.call("PUT", f"/resource_classes/{name}").status == 201
    host = one.client.make_provider(CUSTOM_A=8, CUSTOM_B=8)
    before = one.client.get(f"/resource_providers/{host}/inventories")
    assert list(before["inventories"]) == ["CUSTOM_A", "CUSTOM_B"]
    path = f"/resource_providers/{host}/inventories/CUSTOM_A"
    call = other.client.call
    assert call("DELETE", path).status == 204
    assert call("DELETE", "/resource_classes/CUSTOM_A").status == 204
    assert call("PUT", "/resource_classes/CUSTOM_A").status == 201
    again = {
        "resource_provider_generation": other.client.generation(host),
        "inventories": before["inventories"],
    }
    path = f"/resource_providers/{host}/inventories"
    assert call("PUT", path, again).status == 200
    after = one.client.get(path)
    assert after["inventories"] == before["inventories"]
    assert list(after["inventories"]) == ["CUSTOM_B", "CUSTOM_A"]


def test_threads_that_place_and_remove_keep_exactly_what_is_stored(
    instances: Instances, found: list[int]
) -> None:
    one, other = instances.start(), instances.start()
    for _ in range(3):
        one.client.make_provider(VCPU=1000)
    place(one)

    def work(number: int) -> None:
        instance = (one, other)[number % 2]
        for step in range(12):
            consumers = place(instance, 1 + step % 3)
            assert is_exact(instance)
            if step % 3 == 2:
                path = f"/allocations/{consumers[0]}"
                assert instance.client.call("DELETE", path).status == 204

    at_once([functools.partial(work, number) for number in range(4)])
    assert is_exact(one)
    assert is_exact(other)
    assert bool(found) == RETURNS


def test_many_own_changes_are_not_kept_for_ever(
    instances: Instances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_change, "MOST", 3)
    one = instances.start()
    one.client.make_provider(VCPU=100)
    for _ in range(6):
        place(one)
    assert is_exact(one)
    assert len(one.keeper.own_changes._known) == (3 if RETURNS else 0)
    monkeypatch.setattr(own_change, "MOST_PROVIDERS", 0)
    before = list(one.keeper.own_changes._known)
    place(one)
    assert list(one.keeper.own_changes._known) == before
    assert is_exact(one)


class _Cloud:
    """Hosts with a child each, that random writes by several instances change."""

    def __init__(self, rng: random.Random, instances: list[Instance]) -> None:
        self._rng = rng
        self._instances = instances
        client = instances[0].client
        self._hosts = [client.make_provider(VCPU=20, DISK_GB=100) for _ in range(6)]
        self._children = [client.make_provider(MEMORY_MB=64) for _ in range(3)]
        for child, parent in zip(self._children, self._hosts, strict=False):
            body = {"name": child, "parent_provider_uuid": parent}
            path = f"/resource_providers/{child}"
            assert client.call("PUT", path, body).status == 200
        self._consumers: list[str] = []

    def acts(self, number: int) -> Iterator[str]:
        """Do something at random, and yield what it was."""
        for _ in range(number):
            instance = self._rng.choice(self._instances)
            act = self._rng.choice([*[self.place] * 6, *[self.leave] * 2, self.change])
            act(instance)
            yield act.__name__

    def place(self, instance: Instance) -> None:
        wished = self._rng.choice(
            [
                "resources=VCPU:1",
                "resources=VCPU:2,DISK_GB:7",
                "resources=VCPU:1,MEMORY_MB:3",
                f"resources=VCPU:1&in_tree={self._rng.choice(self._hosts)}",
            ]
        )
        self._consumers += place(instance, self._rng.randint(1, 4), wished)

    def leave(self, instance: Instance) -> None:
        if self._consumers:
            consumer = self._consumers.pop(self._rng.randrange(len(self._consumers)))
            path = f"/allocations/{consumer}"
            assert instance.client.call("DELETE", path).status == 204

    def change(self, instance: Instance) -> None:
        provider = self._rng.choice([*self._hosts, *self._children])
        path = f"/resource_providers/{provider}/traits"
        document = instance.client.get(path)
        traits = self._rng.sample(["HW_CPU_X86_AVX", "HW_CPU_X86_SSE"], 1)
        body = {**document, "traits": traits}
        assert instance.client.call("PUT", path, body).status == 200


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_written_it_is_exactly_what_is_stored(
    seed: int, instances: Instances, found: list[int]
) -> None:
    rng = random.Random(seed)
    both = [instances.start(), instances.start()]
    cloud = _Cloud(rng, both)
    for step, act in enumerate(cloud.acts(60)):
        # Now and then much happens before anybody looks.
        for instance in both:
            if rng.random() < 0.4:
                assert is_exact(instance), (step, act)
    assert all(map(is_exact, both))
    assert bool(found) == RETURNS

"""A write of allocations that loses a race is run again, as a whole."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exc

from placement_foundation.database import storage
from placement_foundation.database.storage import Database
from tests.client import Answer, Client, new_uuid, wants


class Scene:
    """A consumer on two providers, and the operations on it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.home, self.other = (client.make_provider(VCPU=10) for _ in range(2))
        self.consumer = new_uuid()
        name = uuid.uuid4().hex.upper()
        self.new: dict[str, Any] = {
            "project": name,
            "user": name,
            "consumer_type": name,
        }
        amounts = {self.home: {"VCPU": 3}, self.other: {"VCPU": 3}}
        assert client.claim(self.consumer, amounts).status == 204

    def hand_over(self) -> Answer:
        one = wants({self.other: {"VCPU": 4}}, **self.new)
        claims = {self.consumer: wants({}, 1), new_uuid(): one, new_uuid(): one}
        return self.client.call("POST", "/allocations", claims)

    def change(self) -> Answer:
        amounts = {self.home: {"VCPU": 8}}
        return self.client.claim(self.consumer, amounts, generation=1, **self.new)

    def delete(self) -> Answer:
        return self.client.call("DELETE", f"/allocations/{self.consumer}")

    def reshape(self) -> Answer:
        two = {"VCPU": {"total": 10}, "DISK_GB": {"total": 10}}
        shapes = {self.home: (two, {"DISK_GB": 1}), self.other: ({}, {})}
        body = {
            "inventories": {
                each: {"resource_provider_generation": 2, "inventories": wanted}
                for each, (wanted, _) in shapes.items()
            },
            "allocations": {
                self.consumer: wants(
                    {each: taken for each, (_, taken) in shapes.items() if taken}, 1
                )
            },
        }
        return self.client.call("POST", "/reshaper", body)

    def state(self) -> Any:
        """Return all that there is, without names that differ between scenes."""
        return [
            [
                self.client.generation(provider),
                self.client.usages(provider),
                sorted(
                    (each["consumer_generation"], sorted(each["resources"].items()))
                    for each in self.allocations(provider)
                ),
            ]
            for provider in (self.home, self.other)
        ]

    def allocations(self, provider: str) -> list[Any]:
        document = self.client.get(f"/resource_providers/{provider}/allocations")
        return list(document["allocations"].values())


@contextmanager
def deadlock_at(database: Database, number: int) -> Iterator[list[str]]:
    """Let one statement of a number deadlock, the first time that it is reached."""
    executed: list[str] = []

    def fail(connection: Any, cursor: Any, statement: str, *unused: Any) -> None:
        executed.append(statement)
        if len(executed) == number:
            raise db_exc.DBDeadlock

    sa.event.listen(database.engine, "before_cursor_execute", fail)
    try:
        yield executed
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", fail)


@pytest.mark.parametrize(
    "act", [Scene.hand_over, Scene.change, Scene.delete, Scene.reshape]
)
def test_a_deadlock_at_whatever_statement_is_not_noticed(
    client: Client, database: Database, act: Callable[[Scene], Answer]
) -> None:
    # The first time, it finds out which tables of our own there are.
    assert act(Scene(client)).status == 204
    undisturbed = Scene(client)
    with deadlock_at(database, 0) as executed:
        assert act(undisturbed).status == 204
    for number in range(1, len(executed) + 1):
        disturbed = Scene(client)
        with deadlock_at(database, number) as again:
            assert act(disturbed).status == 204, executed[number - 1]
        assert len(again) > number
        assert disturbed.state() == undisturbed.state()


def test_deadlocks_without_end_are_a_conflict(
    client: Client, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It would wait ten seconds in all.
    monkeypatch.setattr(storage, "_pause", lambda attempt: 0)
    scene = Scene(client)
    before = scene.state()

    def fail(connection: Any, cursor: Any, statement: str, *unused: Any) -> None:
        if statement.startswith("INSERT INTO allocations"):
            raise db_exc.DBDeadlock

    sa.event.listen(database.engine, "before_cursor_execute", fail)
    answer = scene.change()
    sa.event.remove(database.engine, "before_cursor_execute", fail)
    assert answer.status == 409
    assert answer.code == "placement.concurrent_update"
    assert scene.state() == before

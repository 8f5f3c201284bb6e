"""However much is written at once, it takes the same number of SQL statements."""

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from placement.db import models
from placement_foundation.database.storage import Database
from tests.client import Client, new_uuid, wants
from tests.statements import statements

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

pytestmark = pytest.mark.usefixtures("undisturbed")

FEW, MANY = (3, 2), (100, 50)


@pytest.fixture
def client(application: "WSGIApplication") -> Client:
    return Client(application)


class Scene:
    """Some consumers, each of which uses each of some providers."""

    def __init__(self, client: Client, size: tuple[int, int]) -> None:
        self.client = client
        self.name = uuid.uuid4().hex.upper()
        self.consumers = [new_uuid() for _ in range(size[0])]
        self.providers = [
            client.make_provider(VCPU=1000, DISK_GB=1000) for _ in range(size[1])
        ]

    def claims(self, generation: int | None, turn: int) -> dict[str, Any]:
        """Return the claims of all consumers, of as many different owners."""
        amounts = {provider: {"VCPU": 1, "DISK_GB": 2} for provider in self.providers}
        return {
            consumer: wants(
                amounts,
                generation,
                project=f"team {number} of {self.name}, turn {turn}",
                user=f"robot {number} of {self.name}, turn {turn}",
                consumer_type=f"TYPE_{number}_{self.name}_{turn}",
            )
            for number, consumer in enumerate(self.consumers)
        }

    def catch_up(self) -> None:
        self.client.generation(self.providers[0])

    def create(self) -> None:
        self.post(self.claims(None, turn=1))

    def change(self) -> None:
        self.post(self.claims(1, turn=2))

    def reshape(self) -> None:
        generation = self.client.generation(self.providers[0])
        inventories = {"VCPU": {"total": 2000}, "MEMORY_MB": {"total": 1}}
        shape = {
            "resource_provider_generation": generation,
            "inventories": {**inventories, "DISK_GB": {"total": 2000}},
        }
        body = {
            "inventories": dict.fromkeys(self.providers, shape),
            "allocations": self.claims(2, turn=3),
        }
        assert self.client.call("POST", "/reshaper", body).status == 204

    def reshape_away(self) -> None:
        generation = self.client.generation(self.providers[0])
        shape = {"resource_provider_generation": generation, "inventories": {}}
        body = {
            "inventories": dict.fromkeys(self.providers, shape),
            "allocations": {each: wants({}, 3) for each in self.consumers},
        }
        assert self.client.call("POST", "/reshaper", body).status == 204

    def empty(self) -> None:
        self.post({each: wants({}, 2) for each in self.consumers})

    def put(self) -> None:
        path = f"/allocations/{self.consumers[0]}"
        body = self.claims(None, turn=1)[self.consumers[0]]
        assert self.client.call("PUT", path, body).status == 204

    def delete(self) -> None:
        path = f"/allocations/{self.consumers[0]}"
        assert self.client.call("DELETE", path).status == 204

    def read_consumer(self) -> None:
        document = self.client.get(f"/allocations/{self.consumers[0]}")
        assert len(document["allocations"]) == len(self.providers)

    def read_provider(self) -> None:
        path = f"/resource_providers/{self.providers[0]}/allocations"
        assert len(self.client.get(path)["allocations"]) == len(self.consumers)

    def post(self, claims: dict[str, Any]) -> None:
        answer = self.client.call("POST", "/allocations", claims)
        assert answer.status == 204, answer


STORIES: dict[str, list[Callable[[Scene], None]]] = {
    "created, changed and emptied": [Scene.create, Scene.change, Scene.empty],
    "reshaped and reshaped away": [
        Scene.create,
        Scene.change,
        Scene.reshape,
        Scene.reshape_away,
    ],
    "read": [Scene.create, Scene.read_consumer, Scene.read_provider],
    "one put and deleted": [Scene.put, Scene.delete],
}


@pytest.mark.parametrize("story", STORIES)
def test_the_number_of_statements_is_the_same_for_few_and_for_many(
    client: Client, database: Database, story: str
) -> None:
    first, few, many = (Scene(client, size) for size in ((1, 1), FEW, MANY))
    # From here on it is known which tables of our own there are.
    first.put()
    first.delete()
    # The first read loads what is kept.
    client.get("/resource_providers")
    for act in STORIES[story]:
        counted = []
        for scene in (few, many):
            # Reading catches up with what was changed before, or with its own trees.
            scene.catch_up()
            with statements(database) as executed:
                act(scene)
            counted.append(executed)
        for_few, for_many = counted
        assert for_few == for_many, act.__name__
        assert len(for_few) > 0


@pytest.mark.damage
@pytest.mark.parametrize(
    "root", [None, pytest.param(2**31 - 1, marks=pytest.mark.embedded)]
)
def test_a_provider_whose_root_is_gone_has_no_allocations_to_show(
    client: Client, database: Database, root: int | None
) -> None:
    known = Scene(client, (1, 1))
    known.create()
    provider = known.providers[0]
    row = models.ResourceProvider
    damage = sa.update(row).where(row.uuid == provider).values(root_provider_id=root)
    database.write(lambda connection: connection.execute(damage))
    answer = client.call("GET", f"/resource_providers/{provider}/allocations")
    assert answer.status == 404
    assert f"Resource provider '{provider}' not found" in answer.detail

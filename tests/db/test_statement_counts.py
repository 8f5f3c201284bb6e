"""However much there is, an operation takes the same number of SQL statements."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from placement_foundation.database.storage import Database
from tests.client import Answer, Client, new_uuid, wants
from tests.statements import statements

pytestmark = pytest.mark.usefixtures("undisturbed")

FEW, MANY = 2, 30

STANDARD_TRAITS = ["HW_CPU_X86_AVX", "HW_CPU_X86_AVX2"]


class Scene:
    """A tree of some providers; each has as many inventories, traits and aggregates.

    The root has a child, and the child has all the others. Each is used by as many
    consumers of one project.
    """

    numbers = itertools.count()

    def __init__(self, client: Client, size: int) -> None:
        self.client = client
        self.names = [f"CUSTOM_N{next(self.numbers)}" for _ in range(size)]
        for name in self.names:
            self.call("PUT", f"/resource_classes/{name}")
            self.call("PUT", f"/traits/{name}")
        self.aggregates = [new_uuid() for _ in range(size)]
        self.root, self.child = new_uuid(), new_uuid()
        self.add(self.root, None)
        self.add(self.child, self.root)
        self.leaves = [new_uuid() for _ in range(size)]
        for leaf in self.leaves:
            self.add(leaf, self.child)
            self.fill(leaf)
        for leaf in self.leaves:
            amounts = {leaf: dict.fromkeys(self.names, 1)}
            self.claim(amounts, f"project of {self.root}")
        self.generation = self.client.generation(self.leaves[0])
        # One that is not used, and one that has nothing.
        self.unused, self.empty, self.elsewhere = new_uuid(), new_uuid(), new_uuid()
        for provider in (self.unused, self.empty, self.elsewhere):
            self.add(provider, None)
        self.fill(self.unused)

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        answer = self.client.call(method, path, body)
        assert answer.status < 300, answer
        return answer

    def add(self, uuid: str, parent: str | None) -> None:
        body = {"name": uuid, "uuid": uuid, "parent_provider_uuid": parent}
        self.call("POST", "/resource_providers", body)

    def claim(self, amounts: dict[str, dict[str, int]], project: str) -> None:
        body = wants(amounts, project=project)
        self.call("PUT", f"/allocations/{new_uuid()}", body)

    def fill(self, provider: str, generation: int = 0, total: int = 100) -> None:
        self.put_inventories(provider, generation, total)
        self.put_traits(provider, generation + 1)
        self.put_aggregates(provider, generation + 2)

    def put_inventories(self, provider: str, generation: int, total: int) -> None:
        body = {
            "resource_provider_generation": generation,
            "inventories": {name: {"total": total} for name in self.names},
        }
        self.call("PUT", f"/resource_providers/{provider}/inventories", body)

    def put_traits(self, provider: str, generation: int) -> None:
        traits = self.names + STANDARD_TRAITS
        body = {"resource_provider_generation": generation, "traits": traits}
        self.call("PUT", f"/resource_providers/{provider}/traits", body)

    def put_aggregates(self, provider: str, generation: int) -> None:
        body = {
            "resource_provider_generation": generation,
            "aggregates": self.aggregates,
        }
        self.call("PUT", f"/resource_providers/{provider}/aggregates", body)


def read_lists(scene: Scene) -> Iterator[Callable[[], Any]]:
    """Yield what reads the lists of classes, traits and usages."""
    client, leaf = scene.client, f"/resource_providers/{scene.leaves[0]}"
    yield lambda: client.get("/resource_classes")
    yield lambda: client.get("/traits")
    yield lambda: client.get("/traits?associated=true")
    yield lambda: client.get(f"/traits?name=in:{','.join(scene.names)}")
    yield lambda: client.get(f"{leaf}/inventories")
    yield lambda: client.get(f"{leaf}/traits")
    yield lambda: client.get(f"{leaf}/aggregates")
    yield lambda: client.get(f"{leaf}/usages")
    yield lambda: client.get(f"/usages?project_id=project+of+{scene.root}")


def write(scene: Scene) -> Iterator[Callable[[], Any]]:
    """Yield what changes providers and what they have."""
    empty, unused = f"/resource_providers/{scene.empty}", scene.unused
    yield lambda: scene.put_inventories(scene.empty, 0, total=1)
    yield lambda: scene.put_inventories(scene.empty, 1, total=2)
    yield lambda: scene.put_traits(scene.empty, 2)
    yield lambda: scene.put_aggregates(scene.empty, 3)
    yield lambda: scene.call("DELETE", f"{empty}/traits")
    yield lambda: scene.call("DELETE", f"{empty}/inventories/{scene.names[0]}")
    yield lambda: scene.call("DELETE", f"{empty}/inventories")
    yield lambda: scene.call("DELETE", f"/resource_providers/{unused}")
    yield lambda: scene.add(new_uuid(), scene.child)
    moved = {"name": scene.child, "parent_provider_uuid": scene.elsewhere}
    yield lambda: scene.call("PUT", f"/resource_providers/{scene.child}", moved)


@pytest.mark.parametrize("operations", [read_lists, write])
def test_the_number_of_statements_is_the_same_for_few_and_for_many(
    client: Client,
    database: Database,
    operations: Callable[[Scene], Iterator[Callable[[], Any]]],
) -> None:
    few, many = Scene(client, FEW), Scene(client, MANY)
    # The first requests load what is kept, and find out which tables there are.
    client.get("/resource_providers")
    client.get("/ledger/v1/declared")
    compared = 0
    for number, (for_few, for_many) in enumerate(
        zip(operations(few), operations(many), strict=True)
    ):
        with statements(database) as small:
            for_few()
        with statements(database) as large:
            for_many()
        assert small == large, f"{operations.__name__}, number {number}"
        assert small
        compared += 1
    assert compared > 8

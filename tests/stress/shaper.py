"""A process that changes everything but claims: trees, traits, classes, aggregates."""

import random
import uuid
from collections.abc import Callable
from typing import Any

from tests.stress import room
from tests.stress.actor import Actor
from tests.stress.world import Service

CLASSES = ("DISK_GB", "MEMORY_MB", "CUSTOM_SHAPED")
TRAITS = ("CUSTOM_ROUND", "CUSTOM_SQUARE", "HW_CPU_X86_SSE")
# How many consumers use providers at a time.
MOST_USED = 4


class Shaper(Actor):
    """Does to providers of its own whatever the API offers, sure of nothing.

    Requests are not sent again: the feed tells what became of them.
    """

    pause = 0.02

    def __init__(self, service: Service, seed: int) -> None:
        super().__init__(service)
        self._chance = random.Random(f"{seed} shaper")
        self._trees: dict[str, str | None] = {}
        self._used: list[str] = []
        self._aggregates = [str(uuid.uuid4()) for _ in range(3)]

    def act(self) -> None:
        """Change something."""
        deeds: list[Callable[[], None]] = [
            self.create,
            self.rename,
            self.move,
            self.delete,
            self.fill,
            self.fill_one,
            self.qualify,
            self.group,
            self.use,
            self.reshape,
            self.name,
        ]
        if not self._trees:
            self.create()
        else:
            self._chance.choice(deeds)()

    def create(self) -> None:
        """Create a provider, perhaps below another one."""
        if len(self._trees) > 8:
            return
        new = str(uuid.uuid4())
        parent = self._chance.choice([None, *self._trees])
        body = {"uuid": new, "name": f"shaped-{new}"}
        if parent:
            body["parent_provider_uuid"] = parent
        self._call("POST", "/resource_providers", body)
        self._trees[new] = parent

    def rename(self) -> None:
        """Give a provider another name."""
        each = self._any()
        body = {"name": f"shaped-{uuid.uuid4()}"}
        if self._trees[each]:
            body["parent_provider_uuid"] = str(self._trees[each])
        self._call("PUT", f"/resource_providers/{each}", body)

    def move(self) -> None:
        """Put a provider, with all below it, below another one or none."""
        each = self._any()
        parent = self._chance.choice([None, *self._trees])
        body = {"name": f"shaped-{uuid.uuid4()}", "parent_provider_uuid": parent}
        if self._call("PUT", f"/resource_providers/{each}", body) == 200:
            self._trees[each] = parent

    def delete(self) -> None:
        """Delete a provider that has no children."""
        each = self._any()
        if each not in self._trees.values():
            self._call("DELETE", f"/resource_providers/{each}/inventories")
            status = self._call("DELETE", f"/resource_providers/{each}")
            if status in (204, 404):
                del self._trees[each]

    def fill(self) -> None:
        """Replace the inventories of a provider."""
        each = self._any()
        some = self._chance.sample(CLASSES[:2], self._chance.randint(0, 2))
        self._put(each, "inventories", {"inventories": self._inventories(some)})

    def fill_one(self) -> None:
        """Replace, create or delete one inventory of a provider."""
        each, name = self._any(), self._chance.choice(CLASSES)
        path = f"/resource_providers/{each}/inventories"
        way = self._chance.choice(["PUT", "POST", "DELETE"])
        if way == "DELETE":
            self._call("DELETE", f"{path}/{name}")
            return
        body = {
            "resource_provider_generation": self._generation(each),
            "total": self._chance.randint(10, 20),
        }
        if way == "PUT":
            self._call("PUT", f"{path}/{name}", body)
        else:
            self._call("POST", path, {**body, "resource_class": name})

    def qualify(self) -> None:
        """Replace the traits of a provider."""
        some = self._chance.sample(TRAITS, self._chance.randint(0, 3))
        self._put(self._any(), "traits", {"traits": some})

    def group(self) -> None:
        """Replace the aggregates of a provider."""
        some = self._chance.sample(self._aggregates, self._chance.randint(0, 3))
        self._put(self._any(), "aggregates", {"aggregates": some})

    def use(self) -> None:
        """Let a consumer use providers and change hands, and an earlier one go."""
        most = min(2, len(self._trees))
        some = self._chance.sample(sorted(self._trees), self._chance.randint(1, most))
        for each in some:
            disks = {"inventories": self._inventories(["DISK_GB"])}
            self._put(each, "inventories", disks)
        consumer = str(uuid.uuid4())
        path = f"/allocations/{consumer}"
        body: dict[str, Any] = {
            "allocations": {each: {"resources": {"DISK_GB": 1}} for each in some},
            "project_id": "crash",
            "user_id": "shape",
            "consumer_generation": None,
            "consumer_type": "SHAPE",
        }
        if self._call("PUT", path, body) == 204:
            project = self._chance.choice(["crash", "shape"])
            body |= {"consumer_generation": 1, "project_id": project}
            self._call("PUT", path, body)
        self._used.append(path)
        if len(self._used) > MOST_USED:
            self._call("DELETE", self._used.pop(0))

    def reshape(self) -> None:
        """Write the inventories of a provider and a claim on them in one step."""
        each, consumer = self._any(), str(uuid.uuid4())
        inventories: dict[str, Any] = {
            "resource_provider_generation": self._generation(each),
            "inventories": self._inventories(["DISK_GB"]),
        }
        claim = {
            "allocations": {each: {"resources": {"DISK_GB": 1}}},
            "project_id": "shape",
            "user_id": "shape",
            "consumer_generation": None,
            "consumer_type": "SHAPE",
        }
        body = {"inventories": {each: inventories}, "allocations": {consumer: claim}}
        self._call("POST", "/reshaper", body)
        self._call("DELETE", f"/allocations/{consumer}")

    def name(self) -> None:
        """Create or delete the trait or the class of this world."""
        names = [f"/traits/{name}" for name in TRAITS[:2]]
        path = self._chance.choice([*names, f"/resource_classes/{CLASSES[2]}"])
        self._call(self._chance.choice(["PUT", "PUT", "DELETE"]), path)

    def _inventories(self, names: list[str]) -> dict[str, Any]:
        return {name: {"total": self._chance.randint(10, 20)} for name in names}

    def _any(self) -> str:
        return self._chance.choice(sorted(self._trees))

    def _generation(self, each: str) -> int:
        path = f"/resource_providers/{each}"
        status, document = room.patiently(self._service, "GET", path)
        return int(document["generation"]) if status == 200 else 0

    def _put(self, each: str, what: str, members: dict[str, Any]) -> None:
        body = {"resource_provider_generation": self._generation(each), **members}
        self._call("PUT", f"/resource_providers/{each}/{what}", body)

    def _call(self, method: str, path: str, body: Any = None) -> int:
        return self.call("shape", method, path, body).status

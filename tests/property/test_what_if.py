"""What-ifs, compared with the state after the change has been made."""

import random
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from placement.db import models
from placement_foundation.database.storage import Database
from tests.client import Client, new_uuid

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

STEPS = 7
CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
TRAITS = ("HW_CPU_X86_AVX", "HW_CPU_X86_VMX", "MISC_SHARES_VIA_AGGREGATE")
QUERIES = (
    "resources=VCPU:2",
    "resources=VCPU:2,MEMORY_MB:2&required=HW_CPU_X86_AVX",
    "resources=VCPU:1,DISK_GB:3",
    "resources1=VCPU:2&resources2=VCPU:2&required2=!HW_CPU_X86_VMX&group_policy=isolate",
)
PATHS = {
    "candidates": "/allocation_candidates",
    "explanation": "/ledger/v1/explanation",
    "capacity": "/ledger/v1/capacity",
}


def dump(database: Database) -> str:
    """Return all that is in a database."""
    with database.engine.connect() as connection:
        return "\n".join(
            repr((table.name, sorted(map(repr, connection.execute(sa.select(table))))))
            for table in models.Base.metadata.sorted_tables
        )


class Cloud:
    """A few providers and consumers, which are changed one way and the other."""

    def __init__(self, client: Client, rng: random.Random) -> None:
        self.client = client
        self.rng = rng
        self.aggregates = [new_uuid() for _ in range(2)]
        self.providers: dict[str, str | None] = {}
        self.consumers: list[str] = []
        for _ in range(6):
            uuid = new_uuid()
            parents = [each for each in self.providers if self.rng.random() < 0.4]
            body = {
                "uuid": uuid,
                "name": uuid,
                "parent_provider_uuid": parents[0] if parents else None,
            }
            self.done("POST", "/resource_providers", body)
            self.providers[uuid] = parents[0] if parents else None
            self.make(uuid, self.random_change(uuid, fresh=True))
        for _ in range(8):
            self.claim()

    def done(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.client.call(method, path, body)
        assert answer.status < 300, (method, path, body, answer)
        return answer.document

    def claim(self) -> None:
        provider = self.rng.choice(list(self.providers))
        consumer = new_uuid()
        amounts = {provider: {self.rng.choice(CLASSES): self.rng.randint(1, 3)}}
        if self.client.claim(consumer, amounts).status == 204:
            self.consumers.append(consumer)

    def random_change(self, uuid: str, *, fresh: bool = False) -> Any:
        """Return a change of a provider, as a body describes it."""
        rng = self.rng
        used = {} if fresh else self.client.usages(uuid)
        inventories: dict[str, Any] = {}
        for name in CLASSES:
            if rng.random() < 0.3 and name in used and not used[name]:
                inventories[name] = None
            elif rng.random() < 0.6:
                fields = {
                    "total": rng.randint(4, 12),
                    "max_unit": rng.choice([2, 100]),
                    "step_size": rng.choice([1, 1, 2]),
                    "allocation_ratio": rng.choice([1.0, 1.5]),
                }
                some = {key: fields[key] for key in fields if rng.random() < 0.6}
                if name in used or "total" in some:
                    inventories[name] = some
        return {
            "inventories": inventories,
            "traits": self.random_difference(TRAITS),
            "aggregates": self.random_difference(self.aggregates),
        }

    def random_difference(self, names: Any) -> dict[str, list[str]]:
        add = [name for name in names if self.rng.random() < 0.3]
        remove = [name for name in names if self.rng.random() < 0.2]
        return {"add": add, "remove": [name for name in remove if name not in add]}

    def random_world(self) -> Any:
        changed = self.rng.sample(list(self.providers), self.rng.choice([0, 1, 2]))
        bare = [
            uuid
            for uuid, parent in self.providers.items()
            if parent is None
            and uuid not in self.providers.values()
            and not any(self.client.usages(uuid).values())
            and uuid not in changed
        ]
        gone = self.rng.sample(bare, 1) if bare and self.rng.random() < 0.2 else []
        ignored = self.rng.sample(
            self.consumers, min(len(self.consumers), self.rng.choice([0, 0, 1, 2]))
        )
        return {
            "ignore_consumers": [*ignored, new_uuid()],
            "without_hosts": gone,
            "providers": {uuid: self.random_change(uuid) for uuid in changed},
        }

    def make_world(self, world: Any) -> None:
        """Make what was imagined."""
        for consumer in world["ignore_consumers"][:-1]:
            self.done("DELETE", f"/allocations/{consumer}")
            self.consumers.remove(consumer)
        for uuid in world["without_hosts"]:
            self.done("DELETE", f"/resource_providers/{uuid}")
            del self.providers[uuid]
        for uuid, change in world["providers"].items():
            self.make(uuid, change)

    def make(self, uuid: str, change: Any) -> None:
        here = f"/resource_providers/{uuid}"
        inventories = self.client.get(f"{here}/inventories")["inventories"]
        for name, fields in change["inventories"].items():
            if fields is None:
                inventories.pop(name, None)
            else:
                inventories[name] = {**inventories.get(name, {}), **fields}
        self.replace(uuid, "inventories", inventories)
        for kind in ("traits", "aggregates"):
            names = set(self.client.get(f"{here}/{kind}")[kind])
            names = names - set(change[kind]["remove"]) | set(change[kind]["add"])
            self.replace(uuid, kind, sorted(names))

    def replace(self, uuid: str, kind: str, value: Any) -> None:
        generation = self.client.generation(uuid)
        body = {"resource_provider_generation": generation, kind: value}
        self.done("PUT", f"/resource_providers/{uuid}/{kind}", body)

    def ask(self, ask: str, query: str) -> Any:
        return self.client.get(f"{PATHS[ask]}?{query}")


@pytest.mark.parametrize("seed", range(2))
def test_what_would_be_is_what_is_when_it_is_done(
    application: "WSGIApplication", database: Database, seed: int
) -> None:
    cloud = Cloud(Client(application), random.Random(seed))
    for _ in range(STEPS):
        world = cloud.random_world()
        before = dump(database)
        imagined = {}
        for ask in PATHS:
            for query in QUERIES:
                body = {"query": query, "ask": ask, **world}
                imagined[ask, query] = cloud.done("POST", "/ledger/v1/what-if", body)
        assert dump(database) == before
        cloud.make_world(world)
        for (ask, query), would_be in imagined.items():
            assert would_be == cloud.ask(ask, query), (ask, query, world)
        cloud.claim()

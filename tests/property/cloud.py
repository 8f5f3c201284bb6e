"""Random writes of every kind, and random questions, in the words of the API."""

import random
import uuid
from typing import Any

from placement.model.tree import SHARING
from tests.client import Client, wants

STANDARD = ("VCPU", "DISK_GB")
TRAITS = ("CUSTOM_T1", "CUSTOM_T2", "CUSTOM_T3", "HW_NUMA_ROOT", SHARING)
# Who consumes: projects, users, types of consumers.
OWNERS = (("team-blue", "team-red"), ("robot-7", "robot-8"), ("INSTANCE", "MIGRATION"))
# What is read of one provider: the rest of the path.
READS = (
    "",
    "/inventories",
    "/inventories/VCPU",
    "/traits",
    "/aggregates",
    "/usages",
)
AGGREGATES = tuple(str(uuid.UUID(int=number)) for number in (1, 2, 3))


class Writer:
    """A writer that changes a cloud through one of several instances, at random."""

    def __init__(self, rng: random.Random, clients: list[Client]) -> None:
        self.rng = rng
        self.clients = clients
        self.providers: list[str] = []
        self.consumers: list[str] = []
        self.classes: list[str] = []
        self.number = 0

    def call(self, method: str, path: str, body: Any = None, version: str = "latest"):  # type: ignore[no-untyped-def]
        answer = self.rng.choice(self.clients).call(method, path, body, version)
        assert answer.status < 500, answer
        return answer

    def write(self) -> str:
        """Write something; return what it was."""
        acts = [
            *[self.add_provider] * 4,
            self.rename_provider,
            *[self.move_provider] * 2,
            self.delete_provider,
            *[self.put_inventories] * 5,
            *[self.put_traits] * 3,
            *[self.put_aggregates] * 2,
            *[self.claim] * 6,
            self.claim_several,
            self.give_back,
            *[self.reshape] * 2,
            self.add_class,
            self.rename_class,
            self.delete_class,
            self.delete_trait,
        ]
        act = self.rng.choice(acts)
        act()
        return act.__name__

    def new_name(self) -> str:
        self.number += 1
        return f"CUSTOM_N{self.number}"

    def pick(self) -> str:
        return self.rng.choice(self.providers) if self.providers else str(uuid.uuid4())

    def add_provider(self) -> None:
        provider = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
        body = {"name": provider, "uuid": provider}
        if self.providers and self.rng.random() < 0.5:
            body["parent_provider_uuid"] = self.pick()
        if self.call("POST", "/resource_providers", body).status == 200:
            self.providers.append(provider)
            self.put_inventories(provider)

    def rename_provider(self) -> None:
        body = {"name": self.new_name()}
        self.call("PUT", f"/resource_providers/{self.pick()}", body)

    def move_provider(self) -> None:
        parent = self.pick() if self.rng.random() < 0.7 else None
        body = {"name": self.new_name(), "parent_provider_uuid": parent}
        self.call("PUT", f"/resource_providers/{self.pick()}", body)

    def delete_provider(self) -> None:
        provider = self.pick()
        for _ in range(2):
            path = f"/resource_providers/{provider}"
            if self.call("DELETE", path).status == 204:
                self.providers.remove(provider)
                return
            provider = self.pick()

    def generation(self, provider: str) -> int:
        answer = self.clients[0].call("GET", f"/resource_providers/{provider}")
        return int(answer.document.get("generation", 0))

    def inventories(self) -> dict[str, Any]:
        names = [*STANDARD, *self.classes]
        return {
            name: {
                "total": self.rng.choice([1, 2, 8, 16]),
                "max_unit": self.rng.choice([1, 4, 16]),
                "step_size": self.rng.choice([1, 1, 2]),
                "allocation_ratio": self.rng.choice([1.0, 2.0]),
            }
            for name in names
            if self.rng.random() < 0.6
        }

    def put_inventories(self, provider: str | None = None) -> None:
        provider = provider or self.pick()
        body = {
            "resource_provider_generation": self.generation(provider),
            "inventories": self.inventories(),
        }
        self.call("PUT", f"/resource_providers/{provider}/inventories", body)

    def put_traits(self) -> None:
        provider = self.pick()
        traits = [name for name in TRAITS if self.rng.random() < 0.4]
        for name in traits:
            if name.startswith("CUSTOM"):
                self.call("PUT", f"/traits/{name}")
        body = {
            "resource_provider_generation": self.generation(provider),
            "traits": traits,
        }
        self.call("PUT", f"/resource_providers/{provider}/traits", body)

    def put_aggregates(self) -> None:
        provider = self.pick()
        aggregates = [uuid for uuid in AGGREGATES if self.rng.random() < 0.5]
        body: Any = {
            "resource_provider_generation": self.generation(provider),
            "aggregates": aggregates,
        }
        version = self.rng.choice(["1.18", "latest"])
        path = f"/resource_providers/{provider}/aggregates"
        self.call("PUT", path, aggregates if version == "1.18" else body, version)

    def amounts(self) -> dict[str, dict[str, int]]:
        count = min(len(self.providers), self.rng.choice([1, 1, 2]))
        some = self.rng.sample(self.providers, count)
        return {
            each: {self.rng.choice(STANDARD): self.rng.choice([1, 2])} for each in some
        }

    def owner(self) -> list[str]:
        return [self.rng.choice(names) for names in OWNERS]

    def claim(self) -> None:
        consumer = str(uuid.uuid4())
        generation = None
        if self.consumers and self.rng.random() < 0.4:
            consumer = self.rng.choice(self.consumers)
            document = self.clients[0].get(f"/allocations/{consumer}")
            generation = document.get("consumer_generation")
        body = wants(self.amounts(), generation, *self.owner())
        if self.call("PUT", f"/allocations/{consumer}", body).status == 204:
            self.consumers.append(consumer)

    def claim_several(self) -> None:
        consumers = [str(uuid.uuid4()) for _ in range(2)]
        body = {each: wants(self.amounts(), None, *self.owner()) for each in consumers}
        if self.call("POST", "/allocations", body).status == 204:
            self.consumers += consumers

    def give_back(self) -> None:
        if self.consumers:
            consumer = self.consumers.pop(self.rng.randrange(len(self.consumers)))
            self.call("DELETE", f"/allocations/{consumer}")

    def reshape(self) -> None:
        provider = self.pick()
        inventories, allocations = self.inventories(), {}
        if self.consumers and self.rng.random() < 0.6:
            # All that a consumer uses moves to the provider.
            consumer = self.rng.choice(self.consumers)
            document = self.clients[0].get(f"/allocations/{consumer}")
            amounts = {
                name: amount
                for share in document["allocations"].values()
                for name, amount in share["resources"].items()
            }
            inventories |= {name: {"total": 99} for name in amounts}
            allocations[consumer] = wants(
                {provider: amounts}, document.get("consumer_generation"), *self.owner()
            )
        shape = {
            "resource_provider_generation": self.generation(provider),
            "inventories": inventories,
        }
        body = {"inventories": {provider: shape}, "allocations": allocations}
        self.call("POST", "/reshaper", body)

    def add_class(self) -> None:
        name = self.new_name()
        self.call("PUT", f"/resource_classes/{name}")
        self.classes.append(name)

    def rename_class(self) -> None:
        if self.classes:
            old, new = self.rng.choice(self.classes), self.new_name()
            path = f"/resource_classes/{old}"
            if self.call("PUT", path, {"name": new}, "1.6").status == 200:
                self.classes[self.classes.index(old)] = new

    def delete_class(self) -> None:
        if self.classes:
            name = self.rng.choice(self.classes)
            if self.call("DELETE", f"/resource_classes/{name}").status == 204:
                self.classes.remove(name)

    def delete_trait(self) -> None:
        self.call("DELETE", f"/traits/{self.rng.choice(TRAITS[:3])}")

    def questions_about_usages(self) -> list[str]:
        """Return the paths of the usages of every project, and of a user in each."""
        projects, users, _ = OWNERS
        whole = [f"/usages?project_id={project}" for project in projects]
        return whole + [f"{each}&user_id={users[0]}" for each in whole]

    def question(self) -> str:
        """Return the path of a question."""
        if self.rng.random() < 0.3:
            return self.question_about_providers()
        groups = [self.group("")] if self.rng.random() < 0.7 else []
        for suffix in ("1", "2"):
            if not groups or self.rng.random() < 0.3:
                groups.append(self.group(suffix))
        policy = "&group_policy=" + self.rng.choice(["none", "isolate"])
        root = self.rng.choice(["", "", "&root_required=!CUSTOM_T2"])
        limit = self.rng.choice(["", "&limit=2"])
        return f"/allocation_candidates?{'&'.join(groups)}{policy}{root}{limit}"

    def group(self, suffix: str) -> str:
        names = self.rng.sample([*STANDARD, *self.classes], self.rng.choice([1, 1, 2]))
        text = f"resources{suffix}=" + ",".join(f"{name}:1" for name in names)
        if self.rng.random() < 0.3:
            text += f"&required{suffix}=" + self.traits()
        if self.rng.random() < 0.25:
            mark = self.rng.choice(["", "!"])
            text += f"&member_of{suffix}={mark}{self.rng.choice(AGGREGATES)}"
        if self.rng.random() < 0.15:
            text += f"&in_tree{suffix}={self.pick()}"
        return text

    def traits(self) -> str:
        one, other = self.rng.sample(TRAITS, 2)
        return self.rng.choice([one, f"!{one}", f"in:{one},{other}", f"{one},!{other}"])

    def question_about_one_provider(self) -> str:
        if self.rng.random() < 0.7:
            return f"/resource_providers/{self.pick()}{self.rng.choice(READS)}"
        named = f"CUSTOM_N{self.rng.randrange(self.number + 1)}"
        keys = [f"uuid={self.pick()}", f"in_tree={self.pick()}"]
        keys += [f"name={self.rng.choice([self.pick(), named])}"]
        more = self.rng.choice(["", f"&required={self.traits()}"])
        return f"/resource_providers?{self.rng.choice(keys)}{more}"

    def question_about_providers(self) -> str:
        filters = {
            "resources": "VCPU:1",
            "required": self.traits(),
            "member_of": self.rng.choice(["", "!"]) + self.rng.choice(AGGREGATES),
            "in_tree": self.pick(),
            "uuid": self.pick(),
        }
        some = {key: each for key, each in filters.items() if self.rng.random() < 0.25}
        query = "&".join(f"{key}={each}" for key, each in some.items())
        return f"/resource_providers?{query}"

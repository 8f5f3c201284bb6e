"""One of many processes that use the service at once, and remember what happened."""

import contextlib
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.stress import history
from tests.stress.history import Amounts, Event, Write, shares
from tests.stress.world import (
    LARGE,
    SMALL,
    Service,
    Unanswered,
    World,
    inventories,
)

CLASSES = ("VCPU", "MEMORY_MB")


class Actor:
    """A user of the service, which knows the allocations of its own consumers."""

    def __init__(self, service: Service, world: World, number: int, seed: int) -> None:
        self.events: list[Event] = []
        self._service = service
        self._world = world
        self._chance = random.Random(f"{seed} {number}")
        self._own: dict[str, tuple[int | None, Amounts]] = dict.fromkeys(
            world.private[number], (None, {})
        )
        self._home, self._other = world.pairs[number]

    def act(self) -> None:
        """Do one of the things that users do."""
        deeds: dict[Callable[[], None], int] = {
            self.claim: 8,
            self.hand_over: 4,
            self.contend: 6,
            self.release: 3,
            self.look: 4,
            self.change_inventories: 2,
            self.reshape_in_place: 1,
            self.move_house: 1,
        }
        deed = self._chance.choices([*deeds], [*deeds.values()])[0]
        try:
            deed()
        except Unanswered as exc:
            now = time.monotonic()
            self.events.append(Event("silence", now, now, 0, fault=str(exc)))

    def claim(self) -> None:
        """Let a consumer use something, or something else."""
        uuid = self._any_own()
        self._post([self._own_write(uuid, self._any_amounts())])

    def hand_over(self) -> None:
        """Let one consumer go and another one have what it had."""
        giver, taker = self._chance.sample(sorted(self._own), 2)
        given = self._own[giver][1]
        self._post([self._own_write(giver, {}), self._own_write(taker, given)])

    def contend(self) -> None:
        """Change consumers that others change at the same time."""
        count = self._chance.randint(1, 2)
        writes = []
        for uuid in self._chance.sample(self._world.shared, count):
            document = self._read_consumer(uuid)
            # They never go: else a generation could come back with other amounts.
            after = self._any_amounts()
            generation = document.get("consumer_generation")
            writes.append(Write(uuid, generation, shares(document), after))
        uuid = self._any_own()
        self._post([*writes, self._own_write(uuid, self._any_amounts())])

    def release(self) -> None:
        """Let a consumer go."""
        uuid = self._any_own()
        generation, before = self._own[uuid]
        if not before:
            return
        write = Write(uuid, generation, before, {}, guarded=False)
        event = self._call("release", "DELETE", f"/allocations/{uuid}", writes=[write])
        self._learn(event)

    def look(self) -> None:
        """Read what there is, above all what was just written."""
        uuid = self._any_own()
        generation, amounts = self._own[uuid]
        document = self._read_consumer(uuid)
        if (document.get("consumer_generation"), shares(document)) != (
            generation,
            amounts,
        ):
            now = time.monotonic()
            fault = f"{uuid} was left with {self._own[uuid]} and has {document}"
            self.events.append(Event("look", now, now, 200, fault=fault))
        provider = self._chance.choice(self._world.providers)
        started = time.monotonic()
        usages = self._service.get(f"/resource_providers/{provider}/usages")
        seen = {provider: usages["resource_provider_generation"]}
        used = {provider: usages["usages"]}
        ended = time.monotonic()
        self.events.append(Event("look", started, ended, 200, seen=seen, used=used))

    def change_inventories(self) -> None:
        """Give a provider more or less, however much of it is used."""
        provider = self._chance.choice(self._world.changing)
        body = inventories(
            self._generation(provider), self._chance.randint(SMALL, LARGE)
        )
        path = f"/resource_providers/{provider}/inventories"
        self._call("inventory", "PUT", path, body, bumps={provider: 1})

    def reshape_in_place(self) -> None:
        """Write inventories and a claim on them in one step."""
        provider = self._chance.choice(self._world.changing)
        uuid = self._any_own()
        write = self._own_write(uuid, {provider: {"VCPU": self._chance.randint(1, 3)}})
        body = {
            "inventories": {provider: inventories(self._generation(provider), LARGE)},
            "allocations": {uuid: _document(write)},
        }
        event = self._call("reshape", "POST", "/reshaper", body, [write], {provider: 3})
        self._learn(event)

    def move_house(self) -> None:
        """Move everything between two providers that no other actor uses."""
        home, other = self._home, self._other
        uuid = self._any_own()
        first = self._own_write(uuid, {home: {"VCPU": 1, "MEMORY_MB": 2}})
        if not self._post([first]):
            return
        movers = [
            self._own_write(each, _moved(amounts, home, other))
            for each, (_, amounts) in self._own.items()
            if home in amounts
        ]
        body = {
            "inventories": {
                other: inventories(self._generation(other), LARGE),
                home: inventories(self._generation(home), 0),
            },
            "allocations": {each.consumer: _document(each) for each in movers},
        }
        bumps = {provider: 1 for write in movers for provider in write.after}
        bumps[other] = 3
        bumps[home] = 1
        event = self._call("move", "POST", "/reshaper", body, movers, bumps)
        self._learn(event)
        if event.succeeded:
            self._home, self._other = other, home

    def _any_own(self) -> str:
        return self._chance.choice(sorted(self._own))

    def _any_amounts(self) -> Amounts:
        known = [*self._world.steady, *self._world.changing]
        some = self._chance.sample(known, self._chance.randint(1, 3))
        return {
            provider: {
                name: self._chance.randint(1, 4)
                for name in self._chance.sample(CLASSES, self._chance.randint(1, 2))
            }
            for provider in some
        }

    def _own_write(self, uuid: str, after: Amounts) -> Write:
        generation, before = self._own[uuid]
        return Write(uuid, generation, before, after)

    def _post(self, writes: list[Write]) -> bool:
        body = {write.consumer: _document(write) for write in writes}
        bumped = {provider for write in writes for provider in write.after}
        for write in writes:
            if not write.after:
                bumped.update(write.before)
        bumps = dict.fromkeys(bumped, 1)
        event = self._call("claim", "POST", "/allocations", body, writes, bumps)
        self._learn(event)
        return event.succeeded

    def _learn(self, event: Event) -> None:
        """Remember what own consumers have after a write."""
        for write in event.writes if event.succeeded else []:
            if write.consumer in self._own:
                after = (write.generation or 0) + 1 if write.after else None
                self._own[write.consumer] = after, write.after

    def _read_consumer(self, uuid: str) -> Any:
        started = time.monotonic()
        document = self._service.get(f"/allocations/{uuid}")
        seen = {
            provider: each["generation"]
            for provider, each in document["allocations"].items()
        }
        self.events.append(Event("read", started, time.monotonic(), 200, seen=seen))
        return document

    def _generation(self, provider: str) -> int:
        started = time.monotonic()
        document = self._service.get(f"/resource_providers/{provider}")
        seen = {provider: int(document["generation"])}
        self.events.append(Event("read", started, time.monotonic(), 200, seen=seen))
        return seen[provider]

    def _call(
        self,
        kind: str,
        method: str,
        path: str,
        body: Any = None,
        writes: list[Write] | None = None,
        bumps: dict[str, int] | None = None,
    ) -> Event:
        started = time.monotonic()
        status, document = self._service.call(method, path, body)
        reason = document["errors"][0]["detail"] if status >= 400 else ""
        ended = time.monotonic()
        event = Event(kind, started, ended, status, reason, writes or [], bumps or {})
        self.events.append(event)
        return event


def _document(write: Write) -> dict[str, Any]:
    return {
        "allocations": {
            provider: {"resources": resources}
            for provider, resources in write.after.items()
        },
        "project_id": "stress",
        "user_id": "stress",
        "consumer_generation": write.generation,
        "consumer_type": "STRESS",
    }


def _moved(amounts: Amounts, home: str, other: str) -> Amounts:
    return {
        other if provider == home else provider: resources
        for provider, resources in amounts.items()
    }


def run(
    url: str, world: World, number: int, seed: int, seconds: float, directory: str
) -> None:
    """Act for some time, and write down what happened."""
    with contextlib.closing(Service(url)) as service:
        actor = Actor(service, world, number, seed)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            actor.act()
    history.save(Path(directory, f"{number}.jsonl"), actor.events)

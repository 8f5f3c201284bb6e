"""One of many processes that place consumers, beside plain claims and changes."""

import dataclasses
import random
import time
import uuid
from collections.abc import Callable
from typing import Any

from tests.stress import room
from tests.stress.actor import Actor
from tests.stress.room import (
    CLASS,
    CONTENDED,
    LEAST,
    MOST,
    Amounts,
    Event,
    World,
    shares,
)
from tests.stress.world import Service

PATH = "/ledger/v1/placements"
# How much each process holds before it gives back.
PLENTY = 9
# How many times a request is sent before what it did is left open.
ATTEMPTS = 60


class Placer(Actor):
    """A user who knows what its own consumers have."""

    least_deeds = 20

    def __init__(self, service: Service, world: World, number: int, seed: int) -> None:
        super().__init__(service)
        self._world = world
        self._chance = random.Random(f"{seed} {number}")
        self._own: dict[str, Amounts] = {}
        self._member = world.group[number]
        self._is_placed: bool | None = False
        self._host = world.changing[number] if number < len(world.changing) else None
        # What was placed in one request, and may be asked for again.
        self._placed: list[dict[str, Any]] = []

    def act(self) -> None:
        """Do one of the things that users do."""
        deeds: dict[Callable[[], None], int] = {
            self.place: 10,
            self.place_again: 2,
            self.join_or_leave: 4,
            self.claim: 4,
            self.hand_over: 2,
            self.contend: 4,
            self.look: 3,
            self.change: 1,
            self.lease: 1,
            self.lease_and_confirm: 1,
        }
        held = sum(
            amount[CLASS] for each in self._own.values() for amount in each.values()
        )
        if held > PLENTY:
            self.release()
            return
        deed = self._chance.choices([*deeds], [*deeds.values()])[0]
        deed()

    def place(self) -> None:
        """Place some consumers, in one of the ways there are."""
        number = self._chance.choice([1, 1, 2, 3, 5, 8, 13])
        body = self._body([str(uuid.uuid4()) for _ in range(number)])
        shape: dict[str, Any] = {"within": self._world.hosts}
        way = self._chance.choice(["", "host", "rack", "one rack", "prefer"])
        if way == "host":
            shape |= {"per": "host", "at_most": self._chance.randint(1, 2)}
            body["spread"] = {"per": "host", "at_most": shape["at_most"]}
        elif way == "rack":
            shape |= {"per": "rack", "at_most": self._chance.randint(1, 5)}
            per = {"aggregates": [*self._world.racks]}
            body["spread"] = {"per": per, "at_most": shape["at_most"]}
        elif way == "one rack":
            rack = self._chance.choice([*self._world.racks])
            shape["within"] = self._world.racks[rack]
            body["query"] += f"&member_of={rack}"
        elif way == "prefer":
            body["prefer"] = [{"free": CLASS, "weight": self._chance.choice([1, -1])}]
        if self._chance.random() < 0.3:
            body["at_least"] = self._chance.randint(1, number)
        self._place(body, shape)

    def place_again(self) -> None:
        """Ask again for what has been placed, as a client that has lost the answer."""
        known = [
            body
            for body in self._placed
            if all(uuid in self._own for uuid in body["consumers"])
        ]
        self._placed = known[-5:]
        if known:
            self._place(self._chance.choice(known), {"within": self._world.hosts})

    def join_or_leave(self) -> None:
        """Place the member of the group on a host without another one, or remove it."""
        if self._is_placed is None:
            return
        if self._is_placed:
            self._delete([self._member])
            self._is_placed = False
            return
        beside = [each for each in self._world.group if each != self._member]
        body = self._body([self._member])
        body["spread"] = {"per": "host", "at_most": 1, "with": beside}
        shape = {"per": "host", "at_most": 1, "beside": beside}
        shape["within"] = self._world.hosts
        last = self._place(body, shape)
        self._is_placed = last.succeeded if last.first or last.succeeded else None
        self._own.pop(self._member, None)

    def claim(self) -> None:
        """Claim without asking for a placement, on hosts that may be full."""
        consumer = str(uuid.uuid4())
        hosts = self._chance.sample(self._world.hosts, self._chance.randint(1, 2))
        amounts = {host: {CLASS: self._chance.randint(1, 2)} for host in hosts}
        self._until_known(
            "claim",
            "PUT",
            f"/allocations/{consumer}",
            room.claim(amounts, None),
            lambda document: {"has": {consumer: amounts}},
            consumers=[consumer],
        )

    def hand_over(self) -> None:
        """Let one consumer go and a new one have what it had, in one request."""
        if not self._own:
            return
        giver, taker = self._chance.choice(sorted(self._own)), str(uuid.uuid4())
        amounts = self._own.pop(giver)
        begin = len(self.events)
        self._until_known(
            "claim",
            "POST",
            "/allocations",
            {giver: room.claim({}, 1), taker: room.claim(amounts, None)},
            lambda document: {"has": {taker: amounts}},
            consumers=[taker],
        )
        for event in self.events[begin:]:
            # A repeated request is refused if the giver is gone.
            status = 404 if event.status == 409 else event.status
            gone = dataclasses.replace(
                event, kind="release", status=status, consumers=[giver], has={}
            )
            self.events.append(gone)

    def contend(self) -> None:
        """Change consumers that others change as well, if they are as they were."""
        guards: dict[str, int | None] = {}
        body = {}
        some = self._chance.sample(self._world.shared, self._chance.randint(1, 2))
        for consumer in some:
            document = self._read_consumer(consumer)
            guards[consumer] = document.get("consumer_generation")
            # They never go: else a generation could come back with other amounts.
            host = self._chance.choice(self._world.hosts)
            after = {host: {CONTENDED: self._chance.randint(1, 4)}}
            if after == shares(document):
                after[host][CONTENDED] += 1
            body[consumer] = room.claim(after, guards[consumer])
        self.call("contend", "POST", "/allocations", body, guards=guards)

    def look(self) -> None:
        """Read what a consumer has, which is what it was left with."""
        if self._own:
            consumer = self._chance.choice(sorted(self._own))
            self._read_consumer(consumer, self._own[consumer])

    def _read_consumer(self, consumer: str, expected: Amounts | None = None) -> Any:
        started = time.monotonic()
        document = room.read(self._service, f"/allocations/{consumer}")
        reason = ""
        if expected is not None and shares(document) != expected:
            reason = f"{consumer} was left with {expected} and has {document}"
        seen = {
            host: each["generation"] for host, each in document["allocations"].items()
        }
        ended = time.monotonic()
        self.events.append(Event("look", started, ended, 200, reason, seen=seen))
        return document

    def release(self) -> None:
        """Let some consumers go."""
        some = self._chance.sample(sorted(self._own), min(len(self._own), 4))
        self._delete(some)

    def change(self) -> None:
        """Give the host that only this process changes more or less."""
        if self._host is None:
            return
        total = self._chance.randint(LEAST, MOST)
        path = f"/resource_providers/{self._host}"
        for first in (True, *[False] * ATTEMPTS):
            generation = room.read(self._service, path)["generation"]
            body = room.inventory(generation, total)
            event = self.call(
                "inventory",
                "PUT",
                f"{path}/inventories",
                body,
                first=first,
                host=self._host,
                total=total,
            )
            if event.succeeded:
                return

    def lease(self) -> None:
        """Let the claims of a consumer end by themselves."""
        if not self._own:
            return
        consumer = self._chance.choice(sorted(self._own))
        self._own.pop(consumer)
        body = {"seconds": 1}
        path = f"/ledger/v1/leases/{consumer}"
        self.call("lease", "PUT", path, body, consumers=[consumer])

    def lease_and_confirm(self) -> None:
        """Give a consumer a lease, renew it, and let its claims stay after all."""
        if not self._own:
            return
        path = f"/ledger/v1/leases/{self._chance.choice(sorted(self._own))}"
        for _ in range(2):
            self._until_known("shape", "PUT", path, {"seconds": 600})
        self._until_known("shape", "DELETE", path)

    def _body(self, consumers: list[str]) -> dict[str, Any]:
        return {
            "query": f"resources={CLASS}:1",
            "consumers": consumers,
            "project_id": "crash",
            "user_id": "crash",
            "consumer_type": "CRASH",
        }

    def _place(self, body: dict[str, Any], shape: dict[str, Any]) -> Event:
        consumers = body["consumers"]
        had = {each: self._own[each] for each in consumers if each in self._own}

        def read(document: Any) -> dict[str, Any]:
            placed = document["placements"]
            return {
                "has": {each["consumer"]: shares(each) for each in placed},
                "existed": [each["consumer"] for each in placed if each["existed"]],
                "unplaced": document["unplaced"],
            }

        at_least = body.get("at_least", len(consumers))
        told = {"consumers": consumers, "had": had, "at_least": at_least, **shape}
        last = self._until_known("place", "POST", PATH, body, read, **told)
        if last.succeeded and not last.unplaced:
            self._placed.append(body)
        return last

    def _delete(self, consumers: list[str]) -> None:
        for consumer in consumers:
            self._until_known(
                "release",
                "DELETE",
                f"/allocations/{consumer}",
                consumers=[consumer],
            )
            self._own.pop(consumer, None)

    def _until_known(self, *request: Any, **members: Any) -> Event:
        """Send a request until it is known what it did; remember what there is then."""
        for attempt in range(ATTEMPTS):
            event = self.call(*request, first=not attempt, **members)
            if event.is_known:
                break
            # A process that was killed may have left a commit under way.
            time.sleep(0.5)
        if event.succeeded:
            self._own.update(event.has)
        return event

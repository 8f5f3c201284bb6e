"""The world of placers, and what they did there."""

import contextlib
import dataclasses
import json
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.stress.world import Service, Unanswered

# Amounts by resource class name, by provider UUID.
Amounts = dict[str, dict[str, int]]

# What is placed, and what consumers use that all processes write to.
CLASS, CONTENDED = "VCPU", "MEMORY_MB"
# What a host has; those that change have from LEAST to it.
MOST, LEAST = 6, 3
# How many hosts each of the two racks has.
HOSTS_IN_RACK = 6
FOREVER = float("inf")


@dataclasses.dataclass(frozen=True)
class World:
    """The UUIDs of hosts by rack, of those whose inventory changes, and of consumers.

    The group has one consumer for each process; no two of them are ever on one host.
    All processes write to the ``shared`` consumers.
    """

    racks: dict[str, list[str]]
    changing: list[str]
    group: list[str]
    shared: list[str]

    @property
    def hosts(self) -> list[str]:
        return [host for hosts in self.racks.values() for host in hosts]


@dataclasses.dataclass(frozen=True)
class Event:
    """A request and its answer. Times are of one clock for all processes.

    A status of 0 is no answer. ``first`` tells whether nothing is unknown about an
    earlier attempt. ``had`` is what some of the consumers are known to have before,
    ``has`` what they have after a success; those who went have nothing. ``per`` is
    ``host`` or ``rack``, in which at most ``at_most`` of the consumers and of those
    ``beside`` may be, and ``within`` names the hosts that may be used. ``total`` is the
    new inventory of a ``host``. ``guards`` are the generations that shared consumers
    had to have, ``seen`` those that the answer has of hosts.
    """

    kind: str
    started: float
    ended: float
    status: int
    reason: str = ""
    first: bool = True
    consumers: list[str] = dataclasses.field(default_factory=list)
    had: dict[str, Amounts] = dataclasses.field(default_factory=dict)
    has: dict[str, Amounts] = dataclasses.field(default_factory=dict)
    existed: list[str] = dataclasses.field(default_factory=list)
    unplaced: list[str] = dataclasses.field(default_factory=list)
    at_least: int = 0
    per: str = ""
    at_most: int = 0
    beside: list[str] = dataclasses.field(default_factory=list)
    within: list[str] = dataclasses.field(default_factory=list)
    host: str = ""
    total: int = 0
    guards: dict[str, int | None] = dataclasses.field(default_factory=dict)
    seen: dict[str, int] = dataclasses.field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """Whether it is known what the request did."""
        return self.status not in (0, 503)

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300


def save(path: Path, events: Iterable[Event]) -> None:
    """Write events to a file."""
    with path.open("w") as file:
        for event in events:
            file.write(json.dumps(dataclasses.asdict(event)) + "\n")


def load(path: Path) -> list[Event]:
    """Read events from a file."""
    with path.open() as file:
        return [Event(**json.loads(line)) for line in file]


def patiently(service: Service, method: str, path: str, body: Any = None) -> Any:
    """Return the answer to a request that may be sent again until there is one.

    :raises Unanswered: there was none for long
    """
    until = time.monotonic() + 60
    while True:
        with contextlib.suppress(Unanswered):
            status, document = service.call(method, path, body)
            if status != 503:
                return status, document
        if time.monotonic() > until:
            raise Unanswered(f"{method} {path}: no answer for a minute")
        time.sleep(0.2)


def read(service: Service, path: str) -> Any:
    """Return a document, asking until there is one.

    :raises Unanswered: it is not there
    """
    status, document = patiently(service, "GET", path)
    if status != 200:
        raise Unanswered(f"GET {path}: {status} {document}")
    return document


def create(service: Service, processes: int) -> World:
    """Create hosts in two racks; each process may change one of them."""
    racks = {
        str(uuid.uuid4()): [str(uuid.uuid4()) for _ in range(HOSTS_IN_RACK)]
        for _ in range(2)
    }
    for rack, hosts in racks.items():
        for host in hosts:
            made = {"uuid": host, "name": f"host-{host}"}
            _expect(service.call("POST", "/resource_providers", made))
            path = f"/resource_providers/{host}/inventories"
            _expect(service.call("PUT", path, inventory(0, MOST)))
            body = {"resource_provider_generation": 1, "aggregates": [rack]}
            path = f"/resource_providers/{host}/aggregates"
            _expect(service.call("PUT", path, body))
    changing = [hosts[number] for number in range(2) for hosts in racks.values()]
    group, shared = (
        [str(uuid.uuid4()) for _ in range(number)] for number in (processes, 3)
    )
    return World(racks, changing[:processes], group, shared)


def inventory(generation: int, total: int) -> dict[str, Any]:
    """Return all that a host has."""
    return {
        "resource_provider_generation": generation,
        "inventories": {CLASS: {"total": total}, CONTENDED: {"total": MOST}},
    }


def claim(amounts: Amounts, generation: int | None) -> dict[str, Any]:
    """Return the body that gives a consumer all that it is to have."""
    return {
        "allocations": {
            host: {"resources": resources} for host, resources in amounts.items()
        },
        "project_id": "crash",
        "user_id": "crash",
        "consumer_generation": generation,
        "consumer_type": "CRASH",
    }


def shares(document: Any) -> Amounts:
    """Return the amounts in a document of the allocations of a consumer."""
    return {
        provider: each["resources"]
        for provider, each in document["allocations"].items()
    }


def _expect(answer: tuple[int, Any]) -> None:
    if answer[0] != 200:
        raise Unanswered(f"expected 200, got {answer}")

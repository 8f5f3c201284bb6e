"""What was asked and answered, and whether a correct service can have answered so."""

import dataclasses
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tests.stress.world import World

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Amounts by resource class name, by provider UUID.
Amounts = dict[str, dict[str, int]]

# The reasons for which a write may be refused. That the service itself gave up on
# account of others is not among them.
REASONS = {
    "claim": ["would exceed the capacity", "consumer generation conflict"],
    "inventory": ["generation conflict", "concurrently updated"],
    "reshape": ["would exceed the capacity", "resource provider generation conflict"],
}


@dataclasses.dataclass(frozen=True)
class Write:
    """How one consumer was to change. A generation of None says it was not there."""

    consumer: str
    generation: int | None
    before: Amounts
    after: Amounts
    guarded: bool = True


@dataclasses.dataclass(frozen=True)
class Event:
    """A request and its answer. Times are of one clock for all processes.

    ``bumps`` is by how much generations of providers grow if it succeeds, ``seen``
    which generations the answer told.
    """

    kind: str
    started: float
    ended: float
    status: int
    reason: str = ""
    writes: list[Write] = dataclasses.field(default_factory=list)
    bumps: dict[str, int] = dataclasses.field(default_factory=dict)
    seen: dict[str, int] = dataclasses.field(default_factory=dict)
    used: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)
    fault: str = ""

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300


class Readable(Protocol):
    """Where documents can be read."""

    def get(self, path: str) -> Any:
        """Return the document at a path."""


def save(path: Path, events: Iterable["DataclassInstance"]) -> None:
    """Write events to a file, one in each line."""
    with path.open("w") as file:
        for event in events:
            file.write(json.dumps(dataclasses.asdict(event)) + "\n")


def load(path: Path) -> list[Event]:
    """Read events from a file."""
    with path.open() as file:
        documents = [json.loads(line) for line in file]
    return [
        Event(**{**each, "writes": [Write(**write) for write in each["writes"]]})
        for each in documents
    ]


def find_faults(
    world: World, initial: dict[str, int], events: Sequence[Event], service: Readable
) -> Iterator[str]:
    """Yield what cannot be, comparing answers with each other and with what is left.

    :param initial: the generations of the providers before all
    """
    yield from _answers(events)
    yield from _generations_over_time(events)
    yield from _usages(world, events)
    final = {uuid: service.get(f"/allocations/{uuid}") for uuid in world.consumers}
    for uuid in world.consumers:
        yield from _story(uuid, events, final[uuid])
    for uuid in world.providers:
        yield from _provider(uuid, initial[uuid], events, final, service)


def _answers(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        if event.fault:
            yield f"{event.kind}: {event.fault}"
        elif not event.succeeded:
            reasons = REASONS.get(event.kind, [])
            expected = event.status == 409
            if not expected or not any(each in event.reason for each in reasons):
                yield f"{event.kind} was answered {event.status}: {event.reason}"


def _generations_over_time(events: Iterable[Event]) -> Iterator[str]:
    """Check that a later reader never sees an older generation."""
    seen = defaultdict(list)
    for event in events:
        for uuid, generation in event.seen.items():
            seen[uuid].append((event.started, event.ended, generation))
    for uuid, observations in seen.items():
        finished = sorted(observations, key=lambda each: each[1])
        newest, number = 0, 0
        for started, _, generation in sorted(observations):
            while finished[number][1] < started:
                newest = max(newest, finished[number][2])
                number += 1
            if generation < newest:
                yield f"{uuid} went from generation {newest} back to {generation}"


def _usages(world: World, events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        for uuid, used in event.used.items():
            for name, amount in used.items():
                if amount > world.limit(uuid):
                    yield f"{amount} of {name} was used of {uuid}"


def _story(uuid: str, events: Iterable[Event], final: Any) -> Iterator[str]:
    """Check that the writes of a consumer can have happened one after the other.

    Each generation is left as often as it is reached, once more or less only where the
    story begins and ends.
    """
    balance: Counter[int | None] = Counter({None: 1})
    last: list[tuple[float, float, Write]] = []
    for event in events:
        for write in event.writes if event.succeeded else []:
            if write.consumer == uuid:
                balance[write.generation] -= 1
                balance[(write.generation or 0) + 1 if write.after else None] += 1
                last.append((event.started, event.ended, write))
    reached = {generation: number for generation, number in balance.items() if number}
    shown = final.get("consumer_generation")
    if reached != {shown: 1}:
        yield f"{uuid} has generation {shown}, its writes lead to {reached}"
    latest_start = max((started for started, _, _ in last), default=0.0)
    amounts = shares(final)
    candidates = [write.after for _, ended, write in last if ended >= latest_start]
    if amounts not in (candidates or [{}]):
        yield f"{uuid} has {amounts}, which nobody wrote last"


def _provider(
    uuid: str,
    generation: int,
    events: Iterable[Event],
    final: dict[str, Any],
    service: Readable,
) -> Iterator[str]:
    """Check that a provider shows what its consumers have, and counted all writes."""
    document = service.get(f"/resource_providers/{uuid}/allocations")
    told = {
        consumer: each["resources"]
        for consumer, each in document["allocations"].items()
    }
    had = {
        consumer: shares(each)[uuid]
        for consumer, each in final.items()
        if uuid in shares(each)
    }
    if told != had:
        yield f"{uuid} is used by {told}, its consumers say {had}"
    total: Counter[str] = Counter()
    for resources in told.values():
        total.update(resources)
    usages = service.get(f"/resource_providers/{uuid}/usages")["usages"]
    if dict(total) != {name: amount for name, amount in usages.items() if amount}:
        yield f"{uuid} has usages {usages}, the sum is {dict(total)}"
    bumps = sum(event.bumps.get(uuid, 0) for event in events if event.succeeded)
    if document["resource_provider_generation"] != generation + bumps:
        yield (
            f"{uuid} has generation {document['resource_provider_generation']} "
            f"after {bumps} changes from {generation} on"
        )


def shares(document: Any) -> Amounts:
    """Return the amounts in a document of the allocations of a consumer."""
    return {
        provider: each["resources"]
        for provider, each in document["allocations"].items()
    }

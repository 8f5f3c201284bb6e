"""Whether placers can have been answered so, and the feed be as it is."""

import dataclasses
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tests.stress import follower
from tests.stress.follower import State
from tests.stress.room import CLASS, FOREVER, MOST, Amounts, Event, World

# What may be answered, by kind of request: patterns of the reason, by status. Any
# request may be answered 503.
ALLOWED = {
    "place": {200: "", 201: "", 409: "placement.no_room"},
    "claim": {204: "", 409: "would exceed the capacity"},
    "release": {204: ""},
    "inventory": {200: "", 409: "placement.concurrent_update"},
    "lease": {200: ""},
    "contend": {
        204: "",
        409: "would exceed the capacity|consumer generation conflict",
    },
}
# … if an earlier attempt may have done it.
ALLOWED_AGAIN = {
    "claim": {409: "consumer generation conflict"},
    "release": {404: ""},
}


def find_faults(
    world: World, events: Sequence[Event], final: Mapping[str, Amounts]
) -> Iterator[str]:
    """Yield what cannot be in the answers.

    :param final: what consumers of the events have in the end, those with anything
    """
    yield from _generations_over_time(events)
    for event in events:
        yield from _answer(event)
        if event.kind == "place" and event.succeeded:
            yield from _placed(world, event)
    stays = _stays(events, final)
    yield from _ends(events, final, stays)
    yield from _members(world, stays)
    totals = _totals(events)
    for event in events:
        if event.kind == "place" and event.status == 409 and event.first:
            room = room_at_least(world, event, stays, totals)
            if room >= event.at_least:
                yield (
                    f"{event.at_least} of {len(event.consumers)} were refused while "
                    f"there was room for {room}: {event.reason}"
                )


def _answer(event: Event) -> Iterator[str]:
    if not event.is_known:
        return
    if event.kind in ("apply", "look"):
        if event.reason or event.status != 200:
            yield f"{event.kind} was answered {event.status}: {event.reason}"
        return
    if event.kind == "shape":
        if event.status >= 500:
            yield f"shape was answered {event.status}: {event.reason}"
        return
    allowed = [ALLOWED[event.kind]]
    if not event.first:
        allowed.append(ALLOWED_AGAIN.get(event.kind, {}))
    if not any(
        event.status in each and re.search(each[event.status], event.reason)
        for each in allowed
    ):
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


def _placed(world: World, event: Event) -> Iterator[str]:
    """Check what a placement says of itself."""
    if Counter([*event.has, *event.unplaced]) != Counter(event.consumers):
        yield f"of {event.consumers}, {[*event.has]} were placed, {event.unplaced} not"
    if len(event.has) < event.at_least:
        yield f"{len(event.has)} were placed, {event.at_least} had to be"
    for consumer, amounts in event.has.items():
        [*hosts] = amounts
        if len(hosts) != 1 or amounts[hosts[0]] != {CLASS: 1}:
            yield f"{consumer} was placed with {amounts}"
        elif hosts[0] not in event.within:
            yield f"{consumer} was placed on {hosts[0]}, outside of {event.within}"
    for consumer, amounts in event.had.items():
        if consumer not in event.existed or event.has.get(consumer) != amounts:
            yield f"{consumer} had {amounts}, and {event.has.get(consumer)} after it"
    together = len(event.consumers) == event.at_least
    if together and event.existed and len(event.existed) < len(event.consumers):
        yield f"of {event.consumers}, only {event.existed} were there already"
    if event.first and set(event.existed) - set(event.had):
        yield f"{event.existed} were there before they were asked for"
    for name, count in _in_domains(world, event.per, event.has.values()).items():
        if count > event.at_most:
            yield f"{count} are in {name}, at most {event.at_most} may be"


def _domain(world: World, per: str, host: str) -> str:
    if per == "host":
        return host
    return next((rack for rack, hosts in world.racks.items() if host in hosts), "")


def _in_domains(world: World, per: str, placed: Iterable[Amounts]) -> Counter[str]:
    """Return how many consumers each domain has; none if there are no domains."""
    if not per:
        return Counter()
    return Counter(_domain(world, per, host) for each in placed for host in each)


@dataclasses.dataclass(frozen=True)
class Stay:
    """What a consumer had: at most from ``begin`` to ``end``, surely in between.

    ``amounts`` is None if it is not known whether and where it was.
    """

    consumer: str
    amounts: Amounts | None
    begin: float
    surely_from: float
    surely_until: float
    end: float


def _stays(events: Iterable[Event], final: Mapping[str, Amounts]) -> list[Stay]:
    """Return when consumers had what, in the order of their events."""
    by_consumer: dict[str, list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: event.started):
        for consumer in event.consumers:
            by_consumer[consumer].append(event)
    stays: list[Stay] = []
    for consumer, some in by_consumer.items():
        stays += _stays_of(consumer, some, final.get(consumer))
    return stays


def _stays_of(
    consumer: str, events: Iterable[Event], final: Amounts | None
) -> Iterator[Stay]:
    """Yield the stays of a consumer, whose requests came one after the other."""
    begin = surely = surely_until = FOREVER
    amounts: Amounts | None = None
    leased = False
    for event in events:
        if event.kind in ("place", "claim"):
            begin = min(begin, event.started)
            is_there = event.succeeded or "consumer generation" in event.reason
            if is_there and consumer not in event.unplaced and surely == FOREVER:
                surely = event.ended
                amounts = event.has.get(consumer)
            if event.first and event.is_known and not is_there:
                begin = FOREVER
            if event.first and event.succeeded and consumer in event.unplaced:
                begin = FOREVER
        elif event.kind == "lease":
            leased = True
            surely_until = min(surely_until, event.started)
        elif event.kind == "release":
            surely_until = min(surely_until, event.started)
            if event.succeeded or event.status == 404:
                yield Stay(consumer, amounts, begin, surely, surely_until, event.ended)
                begin = surely = surely_until = FOREVER
                amounts, leased = None, False
    if begin < FOREVER:
        known = amounts or final
        yield Stay(consumer, known, begin, surely, surely_until, FOREVER)
    elif leased:
        raise AssertionError(f"{consumer} has a lease and nothing else")


def _ends(
    events: Sequence[Event], final: Mapping[str, Amounts], stays: Iterable[Stay]
) -> Iterator[str]:
    """Check that consumers have in the end what they were left with."""
    open_ended = {each.consumer: each for each in stays if each.end == FOREVER}
    leased = {
        consumer
        for event in events
        if event.kind == "lease"
        for consumer in event.consumers
    }
    left_open = {
        consumer
        for event in events
        if event.kind == "lease" and not event.is_known
        for consumer in event.consumers
    }
    for consumer in sorted(open_ended.keys() | final.keys()):
        stay = open_ended.get(consumer)
        has = final.get(consumer)
        if stay is None:
            yield f"{consumer} has {has}, which it should not"
        elif consumer in leased:
            if has and consumer not in left_open:
                yield f"{consumer} has {has} after its lease"
        elif stay.surely_from < FOREVER and has != stay.amounts:
            yield f"{consumer} has {has}, and was left with {stay.amounts}"


def _members(world: World, stays: Iterable[Stay]) -> Iterator[str]:
    """Check that no two members of the group were on one host at the same time."""
    some = sorted(
        (each for each in stays if each.consumer in world.group and each.amounts),
        key=lambda each: each.surely_from,
    )
    for number, one in enumerate(some):
        for other in some[number + 1 :]:
            if other.surely_from >= one.surely_until:
                break
            shared = set(one.amounts or ()) & set(other.amounts or ())
            if shared and one.consumer != other.consumer:
                yield f"{one.consumer} and {other.consumer} were both on {shared}"


def _totals(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Return the changes of the inventories of hosts, each made by one process."""
    changes: dict[str, list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: event.started):
        if event.kind == "inventory" and (event.succeeded or not event.is_known):
            changes[event.host].append(event)
    return changes


def _least_total(changes: Sequence[Event], started: float, ended: float) -> int:
    """Return the least that a host can have had at some moment of a period."""
    possible = [MOST]
    for event in changes:
        if event.started > ended:
            break
        if event.succeeded and event.ended < started:
            possible = []
        possible.append(event.total)
    return min(possible)


def room_at_least(
    world: World,
    event: Event,
    stays: Iterable[Stay],
    totals: Mapping[str, Sequence[Event]],
) -> int:
    """Return for how many consumers there was room during all of a request.

    Whoever may have been there counts as if it had been, on each host.
    """
    used: Counter[str] = Counter()
    members: Counter[str] = Counter()
    unknown = 0
    for stay in stays:
        if stay.begin > event.ended or stay.end < event.started:
            continue
        if stay.consumer in event.consumers:
            continue
        if stay.amounts is None:
            # Nobody asks for more than two on each of two hosts.
            unknown += 4
            continue
        for host, resources in stay.amounts.items():
            used[host] += resources[CLASS]
            if stay.consumer in event.beside:
                members[_domain(world, event.per, host)] += 1
    free: Counter[str] = Counter()
    for host in event.within:
        total = _least_total(totals.get(host, ()), event.started, event.ended)
        left = max(0, total - used[host])
        free[_domain(world, event.per, host) if event.per else ""] += left
    if event.per:
        for name in free:
            most = max(0, event.at_most - members[name])
            free[name] = min(free[name], most)
    return sum(free.values()) - unknown


# The feed, which has all commits in their order


def find_faults_of_feed(
    world: World, events: Iterable[Event], begin: State, entries: Sequence[Any]
) -> Iterator[str]:
    """Yield what cannot be in the feed: each change follows from the one before it.

    Entries about one tree are in the order of their commits, so at each of them it is
    known what the hosts have.

    :param begin: what the ledger held where the feed begins
    """
    state = begin
    for _, commit in itertools.groupby(
        entries, key=lambda each: each.get("request_id")
    ):
        growth: Counter[tuple[str, str]] = Counter()
        moved: set[str] = set()
        for entry in commit:
            yield from _entry(state, entry)
            if entry["type"] == "allocations.changed":
                known = state.consumers.get(entry["subject"], {})
                growth.subtract(_used(known))
                growth.update(_used(entry["after"]))
                moved.add(entry["subject"])
            state.apply(entry)
        # A commit as a whole is what must fit, unless it makes nothing worse: a host
        # that shrank may have more in use than it has.
        grown = [place for place, more in growth.items() if more > 0]
        yield from _over_capacity(state, grown)
        yield from _on_one_host(world, state, moved)
    yield from _all_or_nothing(events, entries)
    yield from find_faults_of_shared(world, events, entries)


def _entry(state: State, entry: Any) -> Iterator[str]:
    """Check an entry by itself, before its change is made in the state."""
    kind, before = entry["type"], entry["before"]
    if kind == "journal.gap":
        yield "the feed has a gap, though nobody else has written"
    elif kind == "allocations.changed":
        known = state.consumers.get(entry["subject"], {})
        if (before or {}) != known:
            yield f"{entry['subject']} had {known}, by the feed {before} before {entry}"
    elif kind == "lease.expired" and entry["time"] < before["expires_at"]:
        yield f"a lease has ended before its time: {entry}"


def _used(amounts: Amounts) -> dict[tuple[str, str], int]:
    """Return how much is used, by host and class."""
    return {
        (host, name): amount
        for host, resources in amounts.items()
        for name, amount in resources.items()
    }


def _over_capacity(state: State, grown: Iterable[tuple[str, str]]) -> Iterator[str]:
    for host, name in sorted(grown):
        used = sum(uses.get(host, {}).get(name, 0) for uses in state.consumers.values())
        there = state.providers.get(host, {"inventories": {}})["inventories"]
        capacity = _capacity(there.get(name))
        if used > capacity:
            yield f"{used} of {name} were used of {host}, which has {capacity}"


def _on_one_host(world: World, state: State, moved: set[str]) -> Iterator[str]:
    for consumer in moved.intersection(world.group):
        for other in world.group:
            hosts = state.consumers.get(consumer, {}).keys()
            shared = state.consumers.get(other, {}).keys() & hosts
            if other != consumer and shared:
                yield f"{consumer} and {other} were both on {shared} by the feed"


def _capacity(inventory: Any) -> int:
    if inventory is None:
        return 0
    free = inventory["total"] - inventory["reserved"]
    return int(free * inventory["allocation_ratio"])


def _all_or_nothing(events: Iterable[Event], entries: Iterable[Any]) -> Iterator[str]:
    """Check that those who had to be placed together were, by one request."""
    request_of: dict[str, str | None] = {}
    for entry in entries:
        if entry["type"] == "allocations.changed" and entry["after"]:
            request_of.setdefault(entry["subject"], entry.get("request_id"))
    for event in events:
        if event.kind != "place" or event.at_least < len(event.consumers):
            continue
        if event.had or event.beside:
            continue
        requests = {request_of.get(consumer) for consumer in event.consumers}
        if len(requests) > 1:
            yield f"{event.consumers} were placed by {requests}, not together"


def find_faults_of_shared(
    world: World, events: Iterable[Event], entries: Iterable[Any]
) -> Iterator[str]:
    """Yield where writes of shared consumers cannot have come one after the other.

    They never write what is there already, so each that succeeds has an entry.
    """
    reached: dict[str, int] = dict.fromkeys(world.shared, 0)
    for entry in entries:
        uuid = entry["subject"]
        if entry["type"] == "allocations.changed" and uuid in reached:
            if entry["generation"] != reached[uuid] + 1:
                yield f"{uuid} went from {reached[uuid]} to {entry['generation']}"
            reached[uuid] = entry["generation"]
    left: Counter[tuple[str, int | None]] = Counter()
    for event in events:
        left.update(event.guards.items() if event.succeeded else ())
    for (uuid, generation), count in left.items():
        if count > 1:
            yield f"{count} writes found {uuid} with generation {generation}"
        if (generation or 0) >= reached[uuid]:
            yield f"a write after generation {generation} of {uuid} is lost"


def find_faults_of_replay(
    reading: follower.Reading,
    begin: State,
    end: State,
    rest: Sequence[Sequence[Any]],
    resumed: Mapping[int, Sequence[Any]],
) -> Iterator[str]:
    """Yield where replaying the feed from a picture does not end in the ledger's state.

    :param begin: all that the ledger held when the first picture was taken
    :param end: all that it holds in the end
    :param rest: for each picture of the reading, the entries from its cursor on
    :param resumed: for some entries of the reading, by position, those from the cursor
        of the entry on
    """
    yield from reading.faults
    for picture, entries in zip(reading.pictures, rest, strict=True):
        state = follower.replay(State.of(picture), entries)
        for difference in state.differences(end):
            yield f"replayed from {picture['cursor']}, {difference}"
    for difference in follower.replay(begin.copy(), rest[0]).all_differences(end):
        yield f"replayed from the beginning, {difference}"
    ids = [entry["id"] for entry in reading.entries]
    if len(set(ids)) < len(ids):
        yield "an entry is in the feed twice"
    if [entry["id"] for entry in rest[0]] != ids:
        yield (
            f"the reader has seen {len(ids)} entries, there are {len(rest[0])} since "
            "it began"
        )
    for position, entries in resumed.items():
        if [entry["id"] for entry in entries] != ids[position + 1 :]:
            yield f"whoever goes on after entry {position} does not read the same"

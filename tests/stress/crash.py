"""Placers beside everybody else, while processes and servers may be killed."""

import contextlib
import dataclasses
import itertools
import json
import multiprocessing
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.stress import actor, follower, proof, room
from tests.stress.actor import Actor
from tests.stress.declarer import Declarer
from tests.stress.placer import Placer
from tests.stress.room import Amounts, Event, shares
from tests.stress.server import children
from tests.stress.shaper import Shaper
from tests.stress.world import Service

# Something that harms, and is over when it returns.
Harm = Callable[[random.Random], None]
# How long leases may take to end, in seconds.
LEASES_END = 30
# After how many entries of the feed reading is resumed once more.
RESUMED = 10


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What was done, by kind and status, how many entries were read, and faults.

    ``kills`` is how often the reader was killed.
    """

    done: Counter[tuple[str, int]]
    entries: int
    kills: int
    faults: list[str]


def kill_worker(master: int) -> Harm:
    """Return what ends one of the processes that serve, at once."""

    def harm(chance: random.Random) -> None:
        if workers := children(master):
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(workers), signal.SIGKILL)

    return harm


def pause_worker(master: int, seconds: float = 0.7) -> Harm:
    """Return what stops one of the processes that serve for a while.

    What it has begun to write is committed late.
    """

    def harm(chance: random.Random) -> None:
        if workers := children(master):
            worker = chance.choice(workers)
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGSTOP)
                time.sleep(seconds)
                os.kill(worker, signal.SIGCONT)

    return harm


def run(
    urls: Sequence[str],
    harms: Sequence[Harm],
    *,
    placers: int = 8,
    seconds: float = 25,
    declares: bool = False,
    seed: int,
) -> Verdict:
    """Let processes place and change while there is harm, and check what they saw.

    :param urls: the addresses of the service; processes use them in turn
    :param declares: whether a process declares hardware of the hosts meanwhile
    :param harms: done one after the other, again and again, between pauses; maybe none
    """
    chance = random.Random(f"{seed} harm")
    spawn = multiprocessing.get_context("spawn")
    with (
        contextlib.closing(Service(urls[0])) as service,
        tempfile.TemporaryDirectory() as directory,
    ):
        world = room.create(service, placers)
        reader = follower.Process(urls[-1], seed, directory)
        begin = follower.read_state(service)
        cast: list[tuple[type[Actor], tuple[Any, ...]]] = [
            *((Placer, (world, number, seed)) for number in range(placers)),
            (Shaper, (seed,)),
        ]
        if declares:
            cast.append((Declarer, (world,)))
        writers = []
        for number, (kind, arguments) in enumerate(cast):
            # Placers may be on any node, the others are on the first one.
            url = urls[number % len(urls) if kind is Placer else 0]
            path = Path(directory, f"{number}-events.jsonl")
            details = kind, url, arguments, seconds, path
            writers.append(spawn.Process(target=actor.run, args=details))
        for writer in writers:
            writer.start()
        _harm(harms, reader, chance, seconds)
        for process in writers:
            process.join()
        faults = [
            f"a process ended with {each.exitcode}" for each in writers if each.exitcode
        ]
        events = [
            event
            for path in sorted(Path(directory).glob("*-events.jsonl"))
            for event in room.load(path)
        ]
        final = _settle(service, events)
        reading = reader.finish()
        end = follower.read_state(service)
        rest = [
            follower.entries_since(service, each["cursor"], chance.randint(50, 1000))
            for each in reading.pictures
        ]
        resumed = {
            position: follower.entries_since(
                service,
                reading.entries[position]["cursor"],
                chance.randint(20, 1000),
            )
            for position in chance.sample(
                range(len(reading.entries)), min(RESUMED, len(reading.entries))
            )
        }
    faults += proof.find_faults(world, events, final)
    first = follower.State.of(reading.pictures[0])
    faults += proof.find_faults_of_feed(world, events, first, rest[0])
    faults += proof.find_faults_of_replay(reading, begin, end, rest, resumed)
    done = Counter((event.kind, event.status) for event in events)
    return Verdict(done, len(rest[0]), reader.kills, faults)


def _harm(
    harms: Sequence[Harm],
    reader: follower.Process,
    chance: random.Random,
    seconds: float,
) -> None:
    """Do harm for some time, and kill the reader of the feed again and again."""
    until = time.monotonic() + seconds
    next_harms = itertools.cycle(harms)
    while time.monotonic() < until:
        time.sleep(chance.uniform(1, 2.5))
        for harm in itertools.islice(next_harms, 1):
            harm(chance)
        reader.kill()


def _settle(service: Service, events: Sequence[Event]) -> dict[str, Amounts]:
    """Return what consumers have, once their leases have ended."""
    consumers = {
        each for event in events if event.kind != "shape" for each in event.consumers
    }
    until = time.monotonic() + LEASES_END
    while _leases(service) and time.monotonic() < until:
        time.sleep(0.5)
    fleet: Any = room.read(service, follower.FLEET)
    final = follower.State.of(fleet).consumers
    # The same, asked of each consumer that has anything.
    for consumer in sorted(consumers & final.keys()):
        told = shares(room.read(service, f"/allocations/{consumer}"))
        assert told == final[consumer], (consumer, told, final[consumer])
    return {uuid: final[uuid] for uuid in consumers & final.keys()}


def _leases(service: Service) -> list[Any]:
    found: list[Any] = room.read(service, "/ledger/v1/leases")["leases"]
    return found


def report(verdict: Verdict) -> str:
    """Return what was done, and the first faults."""
    done = {f"{kind} {status}": n for (kind, status), n in sorted(verdict.done.items())}
    return "\n".join([json.dumps(done), *verdict.faults[:20]])

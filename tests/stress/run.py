"""A stress run, from its start to its verdict."""

import contextlib
import dataclasses
import multiprocessing
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.stress import actor, history, world
from tests.stress.world import Service


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What was done, by kind and status, and what cannot be."""

    done: Counter[tuple[str, int]]
    faults: list[str]


def stress(urls: Sequence[str], processes: int, seconds: float, seed: int) -> Verdict:
    """Let processes use a service for some time, and check what it did.

    :param urls: the addresses that it has; processes use them in turn
    :param seed: what chance depends on, as far as processes do not meet
    """
    with contextlib.closing(Service(urls[0])) as service:
        return _stress(urls, service, processes, seconds, seed)


def _stress(
    urls: Sequence[str], service: Service, processes: int, seconds: float, seed: int
) -> Verdict:
    place = world.create(service, processes)
    initial = {
        uuid: int(service.get(f"/resource_providers/{uuid}")["generation"])
        for uuid in place.providers
    }
    # It would be idle for long.
    service.close()
    with tempfile.TemporaryDirectory() as directory:
        spawn = multiprocessing.get_context("spawn")
        users = [
            spawn.Process(
                target=actor.run,
                args=(
                    urls[number % len(urls)],
                    place,
                    number,
                    seed,
                    seconds,
                    directory,
                ),
            )
            for number in range(processes)
        ]
        for user in users:
            user.start()
        for user in users:
            user.join()
        events = [
            event
            for path in sorted(Path(directory).iterdir())
            for event in history.load(path)
        ]
    faults = [
        f"a process ended with {user.exitcode}" for user in users if user.exitcode
    ]
    faults += history.find_faults(place, initial, events, service)
    return Verdict(Counter((event.kind, event.status) for event in events), faults)

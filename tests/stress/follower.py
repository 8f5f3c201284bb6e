"""A reader of the feed beside the writers, and the state that its replay ends in."""

import contextlib
import copy
import dataclasses
import json
import multiprocessing
import os
import random
import time
from collections.abc import Iterable, Iterator
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from tests.stress import room
from tests.stress.world import Service, Unanswered

CHANGES = "/ledger/v1/changes"
FLEET = "/ledger/v1/fleet?fields=parent,inventories,traits,aggregates,consumers"
# What says to whom a consumer belongs.
OWNER = ("project_id", "user_id", "consumer_type")
DIARY = "diary.jsonl"
# How often a picture of the fleet is taken, in pages of the feed.
PICTURE_EVERY = 25
# How often the reader goes back to a cursor that it had before.
RESTART_EVERY = 10


@dataclasses.dataclass
class State:
    """What the ledger holds: providers, what consumers use of them, and their owners.

    ``names`` are those of traits and resource classes, each with its kind before it,
    ``leases`` when leases end, by consumer: a picture of the fleet has neither.
    """

    providers: dict[str, dict[str, Any]]
    consumers: dict[str, dict[str, dict[str, int]]]
    owners: dict[str, dict[str, str | None]]
    names: set[str] = dataclasses.field(default_factory=set)
    leases: dict[str, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, fleet: Any) -> "State":
        """Return the state in a picture of the fleet."""
        state = cls({}, {}, {})
        for each in fleet["providers"]:
            state.providers[each["uuid"]] = {
                "name": each["name"],
                "parent": each["parent_provider_uuid"],
                "root": each["root_provider_uuid"],
                "inventories": dict(each["inventories"]),
                "traits": set(each["traits"]),
                "aggregates": set(each["aggregates"]),
            }
            for consumer, used in each["allocations"].items():
                uses = state.consumers.setdefault(consumer, {})
                uses[each["uuid"]] = used["resources"]
                state.owners[consumer] = {name: used[name] for name in OWNER}
        return state

    def copy(self) -> "State":
        """Return the same state, to go on from."""
        return copy.deepcopy(self)

    def apply(self, entry: Any) -> None:
        """Make the change of an entry; to make it twice does no harm."""
        kind, subject, after = entry["type"], entry["subject"], entry["after"]
        about = kind.partition(".")[0]
        if about in ("trait", "resource_class"):
            self._apply_name(about, entry)
        elif about == "lease":
            self.leases.pop(subject, None)
            if after:
                self.leases[subject] = after["expires_at"]
        elif about in ("allocations", "consumer"):
            self._apply_consumer(entry)
        else:
            self._apply_provider(entry)

    def _apply_provider(self, entry: Any) -> None:
        kind, subject, after = entry["type"], entry["subject"], entry["after"]
        if kind == "provider.deleted":
            self.providers.pop(subject, None)
        elif kind.startswith("provider."):
            each = self._provider(subject)
            each.update({name: after[name] for name in ("name", "parent", "root")})
        elif kind == "inventory.changed":
            inventories = self._provider(subject)["inventories"]
            for name in entry["before"] or {}:
                inventories.pop(name, None)
            inventories.update(after or {})
        elif kind in ("traits.changed", "aggregates.changed"):
            names = self._provider(subject)[kind.partition(".")[0]]
            names.update(after["added"])
            names.difference_update(after["removed"])

    def _apply_consumer(self, entry: Any) -> None:
        subject, after = entry["subject"], entry["after"]
        if entry["type"] == "consumer.changed":
            self.owners[subject] = after
            return
        for each in (self.consumers, self.owners):
            each.pop(subject, None)
        if after:
            self.consumers[subject] = after
            self.owners[subject] = entry["consumer"]
        else:
            # A lease goes with the allocations of its consumer.
            self.leases.pop(subject, None)

    def _apply_name(self, about: str, entry: Any) -> None:
        name, way = f"{about} {entry['subject']}", entry["type"].partition(".")[2]
        if way == "created":
            self.names.add(name)
            return
        self.names.discard(name)
        if way == "renamed":
            self.names.add(f"{about} {entry['after']['name']}")

    def _provider(self, uuid: str) -> dict[str, Any]:
        place = dict.fromkeys(("name", "parent", "root"))
        return self.providers.setdefault(
            uuid, {**place, "inventories": {}, "traits": set(), "aggregates": set()}
        )

    def differences(self, other: "State") -> Iterator[str]:
        """Yield in what another state, of the ledger, differs from this one.

        Names and leases are left out, which not every picture has.
        """
        for what in ("providers", "consumers", "owners"):
            yield from self._differences(what, other)

    def all_differences(self, other: "State") -> Iterator[str]:
        """Yield in what another state differs, names and leases included."""
        yield from self.differences(other)
        yield from self._differences("leases", other)
        for name in sorted(self.names - other.names):
            yield f"{name} is there only by the feed"
        for name in sorted(other.names - self.names):
            yield f"{name} is not there by the feed"

    def _differences(self, what: str, other: "State") -> Iterator[str]:
        mine, theirs = getattr(self, what), getattr(other, what)
        for key in sorted(mine.keys() | theirs.keys()):
            if mine.get(key) != theirs.get(key):
                yield (
                    f"{what}: {key} is {theirs.get(key)}, by the feed {mine.get(key)}"
                )


def read_state(service: Service) -> State:
    """Return all that the ledger holds, while nothing is written."""
    state = State.of(room.read(service, FLEET))
    for about, path in (("trait", "traits"), ("resource_class", "resource_classes")):
        listed = room.read(service, f"/{path}")[path]
        names = [each["name"] if isinstance(each, dict) else each for each in listed]
        state.names.update(f"{about} {name}" for name in names)
    for lease in room.read(service, "/ledger/v1/leases")["leases"]:
        state.leases[lease["consumer"]] = lease["expires_at"]
    return state


@dataclasses.dataclass
class Reading:
    """What a reader has read: entries, each with its cursor, and pictures.

    ``cursors`` are those that it had, each with the number of entries before it; the
    first is that of the first picture. ``faults`` are what cannot be.
    """

    entries: list[Any] = dataclasses.field(default_factory=list)
    pictures: list[Any] = dataclasses.field(default_factory=list)
    faults: list[str] = dataclasses.field(default_factory=list)
    cursors: list[tuple[str, int]] = dataclasses.field(default_factory=list)

    def add(self, line: Any) -> None:
        """Add what a line of a diary says."""
        if "picture" in line:
            self._add_picture(line["picture"])
        elif "page" in line:
            self._add_page(line["position"], line["page"])
        else:
            self.faults.append(line["fault"])

    def _add_picture(self, picture: Any) -> None:
        self.pictures.append(picture)
        if not self.cursors:
            self.cursors.append((picture["cursor"], 0))

    def _add_page(self, position: int, page: Any) -> None:
        """Add a page that was read from a position on, perhaps once more."""
        changes = page["changes"]
        known = self.entries[position : position + len(changes)]
        for old, new in zip(known, changes, strict=False):
            if old["id"] != new["id"]:
                self.faults.append(
                    f"read again, {new['id']} is in the place of {old['id']}"
                )
                break
        end = position + len(changes)
        if end >= len(self.entries):
            self.entries += changes[len(self.entries) - position :]
            self.cursors.append((page["cursor"], end))


class Diary:
    """What a reader writes down, line by line, so that it may be killed at any time.

    A line that it was killed at does not count, as if it had not been read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()
        self.reading, size = load(path)
        os.truncate(path, size)

    def add(self, **line: Any) -> None:
        """Write a line: a picture, a page with its position, or a fault."""
        with self._path.open("ab") as file:
            file.write(json.dumps(line).encode() + b"\n")
        self.reading.add(line)


def load(path: Path) -> tuple[Reading, int]:
    """Return what is written in a diary, and how much of the file are whole lines."""
    reading, size = Reading(), 0
    for line in path.read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):
            size += len(line)
            reading.add(json.loads(line))
    return reading, size


class Follower:
    """A reader that begins again and again, at any of its cursors."""

    def __init__(self, service: Service, seed: int, path: Path) -> None:
        self._service = service
        self._diary = Diary(path)
        self._reading = self._diary.reading
        # It goes on elsewhere each time that it is started.
        self._page = len(self._reading.cursors)
        self._chance = random.Random(f"{seed} follower {self._page}")
        self._is_new = True

    def take_picture(self) -> None:
        """Read the fleet, to replay the feed from there."""
        self._diary.add(picture=room.read(self._service, FLEET))

    def read_on(self) -> bool:
        """Read a page from the last cursor or an earlier one; return if all is read."""
        self._page += 1
        if self._page % PICTURE_EVERY == 0 or not self._reading.pictures:
            self.take_picture()
        cursor, position = self._reading.cursors[-1]
        if self._page % RESTART_EVERY == 0 or self._is_new:
            self._service.close()
            cursor, position = self._chance.choice(self._reading.cursors)
        self._is_new = False
        limit, wait = self._chance.randint(1, 200), self._chance.choice([0, 0, 1])
        path = f"{CHANGES}?since={cursor}&limit={limit}&wait={wait}"
        page = room.read(self._service, path)
        self._diary.add(position=position, page=page)
        return not page["changes"] and position == len(self._reading.entries)

    def give_up(self, exc: Unanswered) -> None:
        """Write down that there is no answer."""
        self._diary.add(fault=f"the feed: {exc}")


def entries_since(service: Service, cursor: str, limit: int) -> list[Any]:
    """Return all entries from a cursor on."""
    found: list[Any] = []
    more = True
    while more:
        page = room.read(service, f"{CHANGES}?since={cursor}&limit={limit}")
        found += page["changes"]
        cursor, more = page["cursor"], page["more"]
    return found


def replay(state: State, entries: Iterable[Any]) -> State:
    """Return a state after the changes of some entries."""
    for entry in entries:
        state.apply(entry)
    return state


def run(url: str, seed: int, directory: str) -> None:
    """Follow until there is a file ``quiet`` and nothing more to read."""
    with contextlib.closing(Service(url)) as service:
        follower = Follower(service, seed, Path(directory, DIARY))
        quiet = Path(directory, "quiet")
        while True:
            was_quiet = quiet.exists()
            try:
                is_empty = follower.read_on()
            except Unanswered as exc:
                follower.give_up(exc)
                break
            if was_quiet and is_empty:
                break
            time.sleep(0.05)


class Process:
    """A reader in a process, which may be killed and goes on in another one."""

    def __init__(self, url: str, seed: int, directory: str) -> None:
        self._arguments = url, seed, directory
        self._diary = Path(directory, DIARY)
        self._quiet = Path(directory, "quiet")
        self._diary.touch()
        self._process = self._start()
        self.kills = 0
        while not load(self._diary)[0].cursors:
            assert self._process.is_alive(), "the reader of the feed has ended"
            time.sleep(0.05)

    def _start(self) -> SpawnProcess:
        self._begin = self._diary.stat().st_size
        spawn = multiprocessing.get_context("spawn")
        process = spawn.Process(target=run, args=self._arguments)
        process.start()
        return process

    def kill(self) -> None:
        """Kill it, whatever it does at the moment, and start it again.

        It is left alone until it has read something since it was started.
        """
        has_read = self._diary.stat().st_size > self._begin
        if has_read and self._process.is_alive():
            self._process.kill()
            self._process.join()
            self._process = self._start()
            self.kills += 1

    def finish(self) -> Reading:
        """Let it read to the end, and return what it has read."""
        self._quiet.touch()
        self._process.join()
        reading, _ = load(self._diary)
        if self._process.exitcode:
            reading.faults.append(f"the reader ended with {self._process.exitcode}")
        return reading

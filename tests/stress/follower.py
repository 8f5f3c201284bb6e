"""A reader of the feed beside the writers, and the state that its replay ends in."""

import contextlib
import dataclasses
import json
import random
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.stress import room
from tests.stress.world import Service, Unanswered

CHANGES = "/ledger/v1/changes"
FLEET = "/ledger/v1/fleet?fields=parent,inventories,traits,aggregates,allocations"
# How often a picture of the fleet is taken, in pages of the feed.
PICTURE_EVERY = 25
# How often the reader goes back to a cursor that it had before.
RESTART_EVERY = 10


@dataclasses.dataclass
class State:
    """What the ledger holds: providers, and what consumers use of them."""

    providers: dict[str, dict[str, Any]]
    consumers: dict[str, dict[str, dict[str, int]]]

    @classmethod
    def of(cls, fleet: Any) -> "State":
        """Return the state in a picture of the fleet."""
        state = cls({}, {})
        for each in fleet["providers"]:
            state.providers[each["uuid"]] = {
                "name": each["name"],
                "parent": each["parent_provider_uuid"],
                "inventories": dict(each["inventories"]),
                "traits": set(each["traits"]),
                "aggregates": set(each["aggregates"]),
            }
            for consumer, used in each["allocations"].items():
                uses = state.consumers.setdefault(consumer, {})
                uses[each["uuid"]] = used["resources"]
        return state

    def apply(self, entry: Any) -> None:
        """Make the change of an entry; to make it twice does no harm."""
        kind, subject, after = entry["type"], entry["subject"], entry["after"]
        if kind == "provider.deleted":
            self.providers.pop(subject, None)
        elif kind.startswith("provider."):
            each = self._provider(subject)
            each["name"], each["parent"] = after["name"], after["parent"]
        elif kind == "inventory.changed":
            inventories = self._provider(subject)["inventories"]
            for name in entry["before"] or {}:
                inventories.pop(name, None)
            inventories.update(after or {})
        elif kind in ("traits.changed", "aggregates.changed"):
            names = self._provider(subject)[kind.partition(".")[0]]
            names.update(after["added"])
            names.difference_update(after["removed"])
        elif kind == "allocations.changed":
            self.consumers.pop(subject, None)
            if after:
                self.consumers[subject] = after

    def _provider(self, uuid: str) -> dict[str, Any]:
        new: dict[str, Any] = {"name": None, "parent": None, "inventories": {}}
        return self.providers.setdefault(
            uuid, {**new, "traits": set(), "aggregates": set()}
        )

    def differences(self, other: "State") -> Iterator[str]:
        """Yield in what another state, of the ledger, differs from this one."""
        for what in ("providers", "consumers"):
            mine, theirs = getattr(self, what), getattr(other, what)
            for uuid in sorted(mine.keys() | theirs.keys()):
                if mine.get(uuid) != theirs.get(uuid):
                    yield (
                        f"{what}: {uuid} is {theirs.get(uuid)}, by the feed "
                        f"{mine.get(uuid)}"
                    )


@dataclasses.dataclass
class Reading:
    """What a reader has read: entries, each with its cursor, and pictures.

    ``begin`` is the cursor of the first picture, from which it read on; ``faults`` are
    what cannot be.
    """

    begin: str = ""
    entries: list[Any] = dataclasses.field(default_factory=list)
    pictures: list[Any] = dataclasses.field(default_factory=list)
    faults: list[str] = dataclasses.field(default_factory=list)


class Follower:
    """A reader that is restarted again and again, at any of its cursors."""

    def __init__(self, service: Service, seed: int) -> None:
        self.reading = Reading()
        self._service = service
        self._chance = random.Random(f"{seed} follower")
        self._cursors: list[tuple[str, int]] = []
        self._page = 0

    def start(self) -> None:
        """Take the first picture, and begin there."""
        self.take_picture()
        self.reading.begin = self.reading.pictures[0]["cursor"]
        self._cursors.append((self.reading.begin, 0))

    def take_picture(self) -> None:
        """Read the fleet, to replay the feed from there."""
        self.reading.pictures.append(room.read(self._service, FLEET))

    def read_on(self) -> bool:
        """Read a page from the last cursor or an earlier one; return if all is read."""
        self._page += 1
        if self._page % PICTURE_EVERY == 0:
            self.take_picture()
        cursor, position = self._cursors[-1]
        if self._page % RESTART_EVERY == 0:
            self._service.close()
            cursor, position = self._chance.choice(self._cursors)
        limit, wait = self._chance.randint(1, 200), self._chance.choice([0, 0, 1])
        path = f"{CHANGES}?since={cursor}&limit={limit}&wait={wait}"
        page = room.read(self._service, path)
        self._compare(position, page["changes"])
        end = position + len(page["changes"])
        if end >= len(self.reading.entries):
            self.reading.entries += page["changes"][
                len(self.reading.entries) - position :
            ]
            self._cursors.append((page["cursor"], end))
        return not page["changes"] and position == len(self.reading.entries)

    def _compare(self, position: int, changes: list[Any]) -> None:
        """Check that entries that are read again are what they were."""
        known = self.reading.entries[position : position + len(changes)]
        for old, new in zip(known, changes, strict=False):
            if old["id"] != new["id"]:
                self.reading.faults.append(
                    f"read again, {new['id']} is in the place of {old['id']}"
                )
                return


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
        follower = Follower(service, seed)
        follower.start()
        Path(directory, "following").touch()
        quiet = Path(directory, "quiet")
        while True:
            was_quiet = quiet.exists()
            try:
                is_empty = follower.read_on()
            except Unanswered as exc:
                follower.reading.faults.append(f"the feed: {exc}")
                break
            if was_quiet and is_empty:
                break
            time.sleep(0.05)
    document = dataclasses.asdict(follower.reading)
    Path(directory, "reading.json").write_text(json.dumps(document))


def load(path: Path) -> Reading:
    """Return what a reader has written down."""
    return Reading(**json.loads(path.read_text()))

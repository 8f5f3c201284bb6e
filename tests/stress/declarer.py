"""A process that declares hardware of the hosts that others claim."""

import time
from typing import Any

from tests.stress import room
from tests.stress.actor import Actor
from tests.stress.room import Event, World
from tests.stress.world import Service

CLASS, OF_CHILD = "CUSTOM_TURN", "CUSTOM_TURN_OF_CHILD"
FLEET = "/ledger/v1/fleet?fields=inventories,traits"
DONE = {"created", "changed", "unchanged"}


class Declarer(Actor):
    """Declares the same of each host and its child, in each turn something else.

    Hosts whose inventories others replace are left out.
    """

    # Placements are what this is about.
    pause = 0.1

    def __init__(self, service: Service, world: World) -> None:
        super().__init__(service)
        self._hosts = sorted(set(world.hosts) - set(world.changing))
        self._turn = 0
        self._known = 0

    def act(self) -> None:
        """Declare the next turn; if it is not known what became of it, look."""
        self._turn += 1
        body = {"owner": "stress", "trees": [self._tree(host) for host in self._hosts]}
        event = self.call("apply", "POST", "/ledger/v1/apply", body, _read)
        if event.succeeded:
            self._known = self._turn
        if not event.is_known:
            self.end()

    def end(self) -> None:
        """Check that each tree is wholly of a turn that may have been the last one."""
        started = time.monotonic()
        found = room.read(self._service, FLEET)["providers"]
        reason = "; ".join(self._faults(found))
        ended = time.monotonic()
        self.events.append(Event("look", started, ended, 200, reason))

    def _tree(self, host: str) -> dict[str, Any]:
        trait = f"{CLASS}_{self._turn % 2}"
        return {
            "name": f"host-{host}",
            "uuid": host,
            "inventories": {CLASS: self._turn},
            "traits": [trait],
            "children": [
                {
                    "name": f"child-{host}",
                    "inventories": {OF_CHILD: self._turn},
                    "traits": [trait],
                }
            ],
        }

    def _faults(self, providers: list[Any]) -> list[str]:
        by_name = {each["name"]: each for each in providers}
        faults = []
        for host in self._hosts:
            parts = [by_name.get(f"host-{host}"), by_name.get(f"child-{host}")]
            states = {_state(part) for part in parts}
            turns = range(self._known, self._turn + 1)
            if not any(states == {_of(turn)} for turn in turns):
                faults.append(f"{host} is {states} after turn {self._known}")
        return faults


def _of(turn: int) -> tuple[int, str]:
    return (turn, f"{CLASS}_{turn % 2}") if turn else (0, "")


def _state(provider: Any) -> tuple[int, str]:
    """Return the turn that a provider is of, and its traits."""
    if provider is None:
        return 0, ""
    totals = {
        inventory["total"]
        for name, inventory in provider["inventories"].items()
        if name in (CLASS, OF_CHILD)
    }
    return max(totals, default=0), ",".join(provider["traits"])


def _read(document: Any) -> dict[str, Any]:
    """Return which trees are not as they were declared, and why."""
    wrong = [each for each in document["trees"] if each["result"] not in DONE]
    refused = "; ".join(f"{each['result']}: {each['reason']}" for each in wrong)
    return {"reason": refused}

"""A game of known turns: the ledger must look the same after the same turns.

Some consumers share the processors of one of two providers. In most turns they all take
another amount; every third turn, the reshaper moves everything to the other provider. A
reader that finds the ledger between two turns has found it broken.

Run as a program, it plays until it is killed and prints each turn when it is done.
"""

import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from placement import app
from placement.objects import allocation, inventory, resource_provider
from tests import backends, settings
from tests.client import Client, wants

TOTAL = 100
AMOUNTS = 7


@dataclasses.dataclass(frozen=True, slots=True)
class Ledger:
    """The state after a turn. Providers are those at home and abroad."""

    turn: int
    home: str
    provider_generations: dict[str, int]
    inventories: dict[str, dict[str, int]]
    consumers: dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Players:
    """The players: two providers, the first of which has processors, and consumers."""

    providers: tuple[str, str]
    consumers: Sequence[str]

    def after(self, turn: int) -> Ledger:
        """Return the state that the rules require after a turn."""
        home, other = self.providers
        generations = {home: 1, other: 1}
        for number in range(1, turn + 1):
            if is_move(number):
                # Filled, used and cleaned up; the old home is only cleaned up.
                generations[other] += 3
                generations[home] += 1
                home, other = other, home
            else:
                generations[home] += 1
        share = (f"turn-{turn}", turn, {home: {"VCPU": amount(turn)}})
        return Ledger(
            turn,
            home,
            generations,
            {home: {"VCPU": TOTAL}, other: {}},
            dict.fromkeys(self.consumers, share) if turn else {},
        )

    def found(self, connection: sa.Connection) -> Ledger:
        """Return the actual state, as far as the rules describe it."""
        generations, inventories, consumers = {}, {}, {}
        for uuid in self.providers:
            provider = resource_provider.get_by_uuid(connection, uuid)
            generations[uuid] = provider.generation
            stored = inventory.list_by_provider(connection, provider)
            inventories[uuid] = {name: each.total for name, each in stored.items()}
            _, found = allocation.list_by_provider(connection, uuid)
            for share in found.allocations:
                who = share.consumer
                taken = {uuid: dict(share.amounts)}
                assert who.uuid not in consumers, "a consumer is in two places"
                consumers[who.uuid] = (who.project_id, who.generation, taken)
        turn = max((generation for _, generation, _ in consumers.values()), default=0)
        homes = [uuid for uuid, stored in inventories.items() if stored]
        assert len(homes) == 1, "processors are in two places"
        return Ledger(turn, homes[0], generations, inventories, consumers)

    def play(self, client: Client, turn: int) -> None:
        """Take a turn."""
        before = self.after(turn - 1)
        home = before.home
        other = next(uuid for uuid in self.providers if uuid != home)
        place = other if is_move(turn) else home
        claims = {
            consumer: wants(
                {place: {"VCPU": amount(turn)}},
                turn - 1 or None,
                project=f"turn-{turn}",
            )
            for consumer in self.consumers
        }
        if is_move(turn):
            shapes = {
                uuid: {
                    "resource_provider_generation": before.provider_generations[uuid],
                    "inventories": {"VCPU": {"total": TOTAL}} if uuid == other else {},
                }
                for uuid in self.providers
            }
            body = {"inventories": shapes, "allocations": claims}
            answer = client.call("POST", "/reshaper", body)
        else:
            answer = client.call("POST", "/allocations", claims)
        assert answer.status == 204, answer


def is_move(turn: int) -> bool:
    return turn % 3 == 0


def amount(turn: int) -> int:
    return 1 + turn % AMOUNTS


def main(url: str, home: str, other: str, *consumers: str) -> None:
    """Play until killed."""
    players = Players((home, other), consumers)
    database = backends.connect(url)
    client = Client(app.build(settings.make_config(), database))
    turn = database.read(players.found).turn
    while True:
        turn += 1
        players.play(client, turn)
        print(turn, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

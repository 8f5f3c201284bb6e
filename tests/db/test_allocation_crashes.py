"""A process may die at any moment: what it was writing is there as a whole, or not."""

import random
import subprocess
import sys
import time

import pytest

from placement_foundation.database.storage import Database
from tests.client import Client, new_uuid
from tests.turns import TOTAL, Players

CRASHES = 4


@pytest.fixture
def players(client: Client) -> Players:
    providers = client.make_provider(VCPU=TOTAL), client.make_provider()
    return Players(providers, [new_uuid() for _ in range(8)])


def test_writes_of_a_killed_process_are_there_or_not(
    database: Database, players: Players
) -> None:
    chance = random.Random(4711)
    done = 0
    url = database.engine.url.render_as_string(hide_password=False)
    for _ in range(CRASHES):
        done = play_and_die(url, players, chance)
        ledger = database.read(players.found)
        assert done <= ledger.turn <= done + 1
        assert ledger == players.after(ledger.turn)
    assert done > CRASHES


def play_and_die(url: str, players: Players, chance: random.Random) -> int:
    """Let a process play some turns, kill it, and return the last turn it had done."""
    arguments = [url, *players.providers, *players.consumers]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.turns", *arguments],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        turns = [process.stdout.readline() for _ in range(chance.randint(2, 9))]
        time.sleep(chance.uniform(0, 0.05))
        process.kill()
        turns += process.stdout.readlines()
    return max(int(turn) for turn in turns if turn.endswith("\n"))

"""A program that checks nothing, again and again, in shifts that others may want too.

Its arguments are the database of the service, a file to which it appends what it does,
and a number for the choice of how long that takes. It runs until it is killed.
"""

import datetime
import os
import random
import sys
import time
from pathlib import Path

from placement_clients import client
from placement_reservations.clock import Clock
from placement_reservations.compute.placement import PlacementCompute
from placement_reservations.lifecycle import watching
from placement_reservations.store import claim as claims
from placement_reservations.world import Rules, World
from tests import backends
from tests.reservations.cloud import POOL

RULES = Rules(watch=datetime.timedelta(seconds=1))


def main(books_url: str, history: str, seed: str) -> None:
    chance = random.Random(seed)
    database = backends.connect(books_url)
    placement = client.from_environment(url="http://127.0.0.1:9", token="admin")
    compute = PlacementCompute(database, placement, POOL)
    world = World(database, placement, compute, Clock(), RULES)

    def note(what: str, number: int) -> None:
        # Appended in one call: others append as well.
        with Path(history).open("a") as file:
            file.write(f"{what} {os.getpid()}.{number}\n")

    number = 0
    while True:
        time.sleep(chance.uniform(0, 0.02))
        began = world.clock.now()
        claim = watching.begin(world)
        if claim is None:
            continue
        number += 1
        note("begins", number)
        try:
            for _ in range(5):
                # Together often longer than others wait for it.
                time.sleep(chance.uniform(0, 0.4))
                watching.go_on(world, claim)
            note("ends", number)
            watching.end(world, claim, began, 0)
        except claims.Lost:
            continue
        note("ended", number)


if __name__ == "__main__":
    main(*sys.argv[1:])

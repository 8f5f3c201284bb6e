"""A program that takes slots, one lease for each, until there are none.

Its arguments are the database of the service and the URL of Placement; it prints how
many slots it got.
"""

import sys

from placement_clients import client
from placement_foundation import errors
from placement_reservations.compute.placement import PlacementCompute
from placement_reservations.world import World
from tests import backends
from tests.client import Client as Administrator
from tests.reservations.cloud import POOL, Clock, Cloud, Wire


def buy(cloud: Cloud) -> int:
    bought = 0
    while True:
        try:
            cloud.order(1)
        except errors.Conflict:
            return bought
        bought += 1


def main(books_url: str, placement_url: str) -> None:
    database = backends.connect(books_url)
    placement = client.from_environment(url=placement_url, token="admin")
    compute = PlacementCompute(database, placement, POOL)
    clock = Clock()
    world = World(database, placement, compute, clock)

    def nothing(*_: object) -> list[bytes]:
        return []

    cloud = Cloud(world, Wire(nothing), clock, Administrator(nothing))
    print(buy(cloud))
    database.engine.dispose()


if __name__ == "__main__":
    main(*sys.argv[1:])

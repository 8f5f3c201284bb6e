"""Declares hosts again and again, each time another turn, until it is killed.

Run as a program, it prints each turn when it is done.
"""

import sys
from collections.abc import Sequence

from placement.declaration import applying
from placement.declaration.outcome import Declaration, Outcome, Terms
from placement.model.declaration import DeclaredProvider
from placement.model.inventory import Inventory
from placement.objects.ledger import Ledger
from placement_foundation.database.storage import Database
from tests import backends

HOSTS = 24


def apply(database: Database, asked: Declaration) -> Outcome:
    """Apply a declaration as the ledger API does."""
    foreseen = foresee(database, asked)
    return applying.apply(Ledger(database), asked, foreseen)


def foresee(database: Database, asked: Declaration) -> Outcome:
    """Return what applying a declaration would do."""
    return database.read(lambda connection: applying.foresee(connection, asked))


def turn(number: int) -> Declaration:
    """Return what is declared in a turn: the same of each host and its child."""
    return Declaration([_host(which, number) for which in range(HOSTS)], Terms("fleet"))


def _host(which: int, number: int) -> Sequence[DeclaredProvider]:
    inventories = {"VCPU": Inventory(number), "CUSTOM_FPGA": Inventory(number)}
    traits = frozenset([f"CUSTOM_TURN_{number % 2}"])
    return (
        DeclaredProvider(f"host{which}", None, None, inventories, traits),
        DeclaredProvider(f"host{which}-gpu", None, 0, inventories, traits),
    )


def main() -> None:
    """Play turns from a given one on."""
    url, first = sys.argv[1:]
    applying.TREES = 5
    database = backends.connect(url)
    for number in range(int(first), 1_000_000):
        apply(database, turn(number))
        print(number, flush=True)


if __name__ == "__main__":
    main()

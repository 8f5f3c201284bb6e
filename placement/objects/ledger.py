"""Transactions on the ledger: writes record their changes."""

import dataclasses
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

from placement.objects.journal import recording
from placement.objects.journal.keeping import Keeper
from placement.objects.transaction import Transaction
from placement_foundation.database import storage
from placement_foundation.database.origin import UNKNOWN, Origin
from placement_foundation.database.storage import Database

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Ledger:
    """A database, its journal, and the origin of writes."""

    database: Database
    journal: Keeper | None = None
    origin: Origin = UNKNOWN

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Run ``work`` as ``Database.read`` does."""
        return self.database.read(work)

    def write(
        self, work: Callable[[Transaction], T], *, attempts: int = storage.ATTEMPTS
    ) -> T:
        """Run ``work`` as ``Database.write`` does, each attempt with a new value.

        The record of its changes is stored just before the commit.
        """

        def attempt(connection: sa.Connection) -> tuple[T, Transaction]:
            tx = Transaction(connection, self.origin)
            result = work(tx)
            recording.store(tx, self.journal)
            return result, tx

        result, tx = self.database.write(attempt, attempts=attempts)
        for follow_up in tx.after_commit:
            follow_up()
        return result

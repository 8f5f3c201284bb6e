"""What a process knows of the journal of its database."""

import threading

import sqlalchemy as sa

from placement.objects.journal.news import News
from placement_foundation.database import storage
from placement_foundation.database.storage import Database

# The key of the keeper, among the notes on a transaction.
_KEEPER = "keeper of the journal"


class Keeper:
    """Whether entries are recorded by this process, and whether any were missed.

    :param days: for how many days entries are kept
    :param most_waiting: how many readers may wait for news at a time
    """

    def __init__(self, days: int, most_waiting: int) -> None:
        self.days = days
        self.news = News(most_waiting)
        self._missed = threading.Event()

    @property
    def has_missed(self) -> bool:
        """Whether something was changed without an entry."""
        return self._missed.is_set()

    def miss(self) -> None:
        """Remember that something was changed without an entry."""
        self._missed.set()

    def catch_up(self) -> None:
        """Forget what was missed: there is an entry that says so."""
        self._missed.clear()


def keep(database: Database, days: int, most_waiting: int = 0) -> None:
    """Record what changes in a database, in this process; not if the days are 0.

    :param most_waiting: how many readers may wait for news at a time
    """
    if days:
        database.info[_KEEPER] = Keeper(days, most_waiting)


def keeper_of(connection: sa.Connection) -> Keeper | None:
    """Return the keeper of the journal, None if there is no journal."""
    found: Keeper | None = storage.notes(connection).get(_KEEPER)
    return found


def keeper(database: Database) -> Keeper | None:
    """Return the keeper of the journal of a database, None if there is no journal."""
    found: Keeper | None = database.info.get(_KEEPER)
    return found


def miss(connection: sa.Connection) -> None:
    """Remember that another program has changed something without an entry."""
    found = keeper_of(connection)
    if found:
        found.miss()

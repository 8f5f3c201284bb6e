"""What a process knows of the journal of its database."""

import threading
from collections.abc import Callable

from placement.objects.journal.news import News
from placement_foundation.database.storage import Database


class Keeper:
    """The journal of a database, as one process keeps it.

    :param days: for how many days entries are kept
    :param most_waiting: returns how many readers may wait for news at a time
    """

    def __init__(
        self, database: Database, days: int, most_waiting: Callable[[], int] = int
    ) -> None:
        self.database = database
        self.days = days
        self.news = News(most_waiting)
        self._lock = threading.Lock()
        self._recorded = 0
        self.missed = 0
        # When a gap may be recorded again without a write, by the monotonic clock.
        self.next_gap = -float("inf")

    @property
    def has_missed(self) -> bool:
        """Whether something was changed without an entry."""
        return self.missed > self._recorded

    def miss(self) -> None:
        """Remember that something was committed without an entry."""
        with self._lock:
            self.missed += 1

    def catch_up(self, missed: int) -> None:
        """Forget what was missed: an entry that says so was committed.

        :param missed: ``missed``, before the entry was stored
        """
        with self._lock:
            self._recorded = max(self._recorded, missed)

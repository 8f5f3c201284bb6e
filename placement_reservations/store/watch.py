"""The watch: which process checks all hosts, and when it is time for that again."""

import dataclasses
import datetime

import sqlalchemy as sa

from placement_reservations.db import models

# There is one watch, of all hosts.
SUBJECT = "hosts"


@dataclasses.dataclass(frozen=True, slots=True)
class Watch:
    """The last one to begin: by whom, and when the next one may.

    While it goes on, ``next_at`` is when it may be taken for dead. ``slots_overused``
    is how many servers the last one that ended found beyond the promised slots.
    """

    holder: str
    next_at: datetime.datetime
    slots_overused: int


def find(connection: sa.Connection) -> Watch | None:
    """Return the last one, if there was one."""
    table = models.Watch
    query = sa.select(table.holder, table.next_at, table.slots_overused)
    row = connection.execute(query.where(table.subject == SUBJECT)).first()
    return Watch(*row) if row else None


def replace(connection: sa.Connection, known: Watch | None, watch: Watch) -> bool:
    """Store a watch instead of the known one, or as the first.

    :returns: whether it still was the known one
    """
    table = models.Watch
    values = dataclasses.asdict(watch)
    if known is None:
        if find(connection):
            return False
        connection.execute(sa.insert(table).values(subject=SUBJECT, **values))
        return True
    held = sa.update(table).where(
        table.subject == SUBJECT, table.holder == known.holder
    )
    return bool(connection.execute(held.values(values)).rowcount)

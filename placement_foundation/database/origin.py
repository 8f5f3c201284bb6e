"""Where a write comes from: the request, or the command, that makes it."""

import copy
import dataclasses

import sqlalchemy as sa

from placement_foundation.database import storage
from placement_foundation.database.storage import Database

# The key of the origin, among the notes on a transaction.
_ORIGIN = "origin"


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """What makes a write, and for whom.

    ``request`` is the method and the path, or the command with its arguments.
    ``global_request_id`` is the id that the caller has given to its own request. What
    is unknown is None.
    """

    request: str | None = None
    request_id: str | None = None
    global_request_id: str | None = None
    user_id: str | None = None
    user_name: str | None = None
    project_id: str | None = None
    project_name: str | None = None


UNKNOWN = Origin()


def note(connection: sa.Connection, came_from: Origin) -> None:
    """Note where a transaction comes from."""
    storage.notes(connection)[_ORIGIN] = came_from


def set_default(database: Database, came_from: Origin) -> None:
    """Note where transactions of this process come from that do not say so."""
    database.openings[_ORIGIN] = lambda connection: note(connection, came_from)


def on(database: Database, came_from: Origin) -> Database:
    """Return a database all whose transactions come from there."""
    same = copy.copy(database)
    same.openings = dict(database.openings)
    set_default(same, came_from)
    return same


def of(connection: sa.Connection) -> Origin:
    """Return where a transaction comes from."""
    found: Origin = storage.notes(connection).get(_ORIGIN, UNKNOWN)
    return found

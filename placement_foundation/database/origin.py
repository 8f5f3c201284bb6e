"""Where a write comes from: the request, or the command, that makes it."""

import copy
import dataclasses
import types
from collections.abc import Mapping

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
NO_SUBJECTS: Mapping[str, Origin] = types.MappingProxyType({})


@dataclasses.dataclass(frozen=True, slots=True)
class _Opening:
    """Notes where a transaction comes from: on the whole, and what is about some."""

    came_from: Origin
    of_subjects: Mapping[str, Origin]

    def __call__(self, connection: sa.Connection) -> None:
        storage.notes(connection)[_ORIGIN] = self


def note(connection: sa.Connection, came_from: Origin) -> None:
    """Note where a transaction comes from."""
    _Opening(came_from, NO_SUBJECTS)(connection)


def set_default(database: Database, came_from: Origin) -> None:
    """Note where transactions of this process come from that do not say so."""
    database.openings[_ORIGIN] = _Opening(came_from, NO_SUBJECTS)


def default_of(database: Database) -> Origin:
    """Return where transactions come from that do not say so."""
    opening = database.openings.get(_ORIGIN)
    return opening.came_from if isinstance(opening, _Opening) else UNKNOWN


def on(
    database: Database,
    came_from: Origin,
    of_subjects: Mapping[str, Origin] = NO_SUBJECTS,
) -> Database:
    """Return a database all whose transactions come from there.

    :param of_subjects: where changes of some subjects come from instead, by UUID
    """
    same = copy.copy(database)
    opening = _Opening(came_from, of_subjects)
    same.openings = {**database.openings, _ORIGIN: opening}
    return same


def of(connection: sa.Connection, subject: str | None = None) -> Origin:
    """Return where a transaction comes from, or its changes of a subject."""
    found: _Opening | None = storage.notes(connection).get(_ORIGIN)
    if found is None:
        return UNKNOWN
    return found.of_subjects.get(subject or "", found.came_from)

"""Places in the journal, and pages of it."""

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

# An entry as JSON.
Document: TypeAlias = Mapping[str, Any]

# The places from which a feed can begin without a cursor.
NOW = "now"
OLDEST = "oldest"


@dataclasses.dataclass(frozen=True, slots=True)
class Cursor:
    """A place in the journal: after the entry with a position and a token."""

    life: str
    position: int
    token: str

    def __str__(self) -> str:
        """Return the cursor as clients get it."""
        return f"{self.life}.{self.position}.{self.token}"


@dataclasses.dataclass(frozen=True, slots=True)
class EntryPage:
    """Some entries, where to go on, and whether there is more.

    Each entry has the cursor of the place after it. The journal lacks changes before it
    ``begins``.
    """

    entries: Sequence[Document]
    cursor: Cursor
    more: bool
    begins: datetime.datetime


# A cursor, NOW or OLDEST.
Since: TypeAlias = Cursor | str


def token_of(uuid: str) -> str:
    """Return the part of an entry's id by which a cursor recognises it."""
    return uuid.replace("-", "")[:12]


def render_time(moment: datetime.datetime) -> str:
    """Return a moment as entries and answers have it."""
    return f"{moment.isoformat(timespec='microseconds')}Z"

"""Places in the journal, and pages of it."""

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

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
        """Return the cursor as callers get it."""
        return f"{self.life}.{self.position}.{self.token}"


@dataclasses.dataclass(frozen=True, slots=True)
class EntryPage:
    """Some entries, where to go on, and whether there is more.

    Each entry has the cursor of the place after it. What was before the journal
    ``begins`` is not known.
    """

    entries: Sequence[Mapping[str, Any]]
    cursor: Cursor
    more: bool
    begins: datetime.datetime


Since: TypeAlias = Cursor | Literal["now", "oldest"]

"""When rows that come from elsewhere were created and changed."""

import datetime
from typing import Protocol


class Timed(Protocol):
    """A value that knows its times, or not."""

    @property
    def created_at(self) -> datetime.datetime | None:
        """Return when it was created."""

    @property
    def updated_at(self) -> datetime.datetime | None:
        """Return when it was changed."""


def known(value: Timed) -> dict[str, datetime.datetime]:
    """Return the times of a value by column, as far as they are known."""
    times = {"created_at": value.created_at, "updated_at": value.updated_at}
    return {name: time for name, time in times.items() if time is not None}

"""When things were changed, in UTC and without a zone, as the tables keep it."""

import datetime
from collections.abc import Iterable

from placement.db import models

now = models.utc_now


def newest(times: Iterable[datetime.datetime | None]) -> datetime.datetime:
    """Return the last of some times; now if none is known."""
    return max((time for time in times if time), default=None) or now()

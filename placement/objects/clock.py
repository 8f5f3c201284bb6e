"""Times of change, in UTC and without a zone, as the tables store them."""

import datetime
from collections.abc import Iterable

from placement_foundation.clock import utc_now

now = utc_now


def newest(times: Iterable[datetime.datetime | None]) -> datetime.datetime:
    """Return the latest of some times; the current time if none is known."""
    return max((time for time in times if time), default=None) or now()

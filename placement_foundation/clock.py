"""The time as every table stores it: UTC, without a zone."""

import datetime


def utc_now() -> datetime.datetime:
    """Return the current time."""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)

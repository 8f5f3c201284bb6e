"""Moments as answers and entries of the journal have them."""

import datetime


def as_text(milliseconds: int) -> str:
    """Return a time in ISO 8601, in UTC."""
    moment = datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"

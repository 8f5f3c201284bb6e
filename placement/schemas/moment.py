"""Moments on the wire: ISO 8601, in UTC."""

import datetime

from placement_foundation import errors


def parse(name: str, text: str) -> int:
    """Return the milliseconds since 1970 of a moment; without a zone it is in UTC.

    :param name: the parameter that has it
    :raises BadRequest: it is not a moment
    """
    try:
        # A plus is a space in a query string.
        moment = datetime.datetime.fromisoformat(text.replace(" ", "+"))
        zone = moment.tzinfo or datetime.UTC
        return round(moment.replace(tzinfo=zone).timestamp() * 1000)
    except (ValueError, OverflowError) as exc:
        raise errors.BadRequest(
            f"Invalid query string parameters: Expected '{name}' to be a time such as "
            f"2026-01-31T12:00:00Z. Got: {text}"
        ) from exc

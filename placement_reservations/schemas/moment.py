"""Times on the wire: UTC."""

import datetime
import re
from typing import Any

from placement_foundation import errors
from placement_reservations import clock

FORMAT = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2} [0-9]{1,2}:[0-9]{1,2}")
NOW = "now"
# Far enough, and well below the limits of time arithmetic.
LAST_YEAR = 9000


def parse(text: str, now: datetime.datetime, member: str) -> datetime.datetime:
    """Return the time in a string, to the minute.

    :param member: the member with the string, for the message
    :raises BadRequest: it is not a time
    """
    if text == NOW:
        return clock.whole_minute(now)
    try:
        if not FORMAT.fullmatch(text):
            raise ValueError(text)
        moment = datetime.datetime.strptime(text, "%Y-%m-%d %H:%M")
    except ValueError as exc:
        raise errors.BadRequest(
            f'{member} {text!r} is not a time: "YYYY-MM-DD HH:MM" in UTC, or "now".'
        ) from exc
    if moment.year > LAST_YEAR:
        raise errors.BadRequest(f"{member} {text!r} is after the year {LAST_YEAR}.")
    return moment


def parse_coming(text: str, now: datetime.datetime, member: str) -> datetime.datetime:
    """Return the time in a string, to the minute, which is this minute or a later one.

    :param member: the member with the string, for the message
    :raises BadRequest: it is not a time, or in the past
    """
    moment = parse(text, now, member)
    if moment < clock.whole_minute(now):
        raise errors.BadRequest(f"{member} {text!r} is in the past.")
    return moment


def render(moment: datetime.datetime) -> str:
    """Render a time. Clients parse it, and expect its microseconds."""
    return moment.isoformat(timespec="microseconds")


def render_stamps(stored: Any) -> dict[str, str | None]:
    """Render the times at which a value was stored and changed."""
    times = {name: getattr(stored, name) for name in ("created_at", "updated_at")}
    return {
        name: time and time.strftime("%Y-%m-%d %H:%M:%S.%f")
        for name, time in times.items()
    }

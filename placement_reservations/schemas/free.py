"""Times at which a lease could start, on the wire."""

import dataclasses
import datetime

from placement_foundation import errors
from placement_foundation.http import query_string
from placement_foundation.http.query_string import Pairs
from placement_foundation.http.schema import Json, Schema, View
from placement_reservations.lifecycle.opening import Search
from placement_reservations.schemas import lease, moment
from placement_reservations.store.lease import Wish

NUMBER = {"type": "string", "pattern": "^[0-9]{1,10}\\Z"}
QUERY = Schema(
    {
        "type": "object",
        "properties": {
            "vcpus": NUMBER,
            "memory_mb": NUMBER,
            "disk_gb": NUMBER,
            "amount": NUMBER,
            "affinity": {"enum": ["None", "True", "False"]},
            "resource_properties": {"type": "string", "maxLength": 10_000},
            "start_date": lease.MOMENT,
            "end_date": lease.MOMENT,
            "minutes": NUMBER,
        },
        "required": ["vcpus", "memory_mb", "disk_gb", "amount"],
        "additionalProperties": False,
    }
)
NUMBERS = ("vcpus", "memory_mb", "disk_gb", "amount")
DEFAULT_MINUTES = 60
# The longest lease in a query: a hundred years.
MOST_MINUTES = 100 * 366 * 24 * 60


@dataclasses.dataclass(frozen=True, slots=True)
class FreeQuery:
    """A lease that could start between two times; None stands for the default."""

    wish: Wish
    duration: datetime.timedelta
    start: str | None
    end: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """When a lease could start; ``lacking`` says why not at once, if it could not."""

    found: Search
    lacking: str | None


def parse_query(pairs: Pairs) -> FreeQuery:
    """Return the query.

    :raises BadRequest: a parameter is unknown, missing or malformed
    """
    query_string.check(pairs, QUERY)
    given = dict(pairs)
    minutes = int(given.get("minutes", DEFAULT_MINUTES))
    if not 0 < minutes <= MOST_MINUTES:
        raise errors.BadRequest(f"minutes must be from 1 to {MOST_MINUTES}.")
    item = {
        "resource_type": "virtual:instance",
        **{name: int(given[name]) for name in NUMBERS},
        "affinity": given.get("affinity"),
        "resource_properties": given.get("resource_properties", ""),
    }
    (wish,) = lease.parse_wishes([item])
    duration = datetime.timedelta(minutes=minutes)
    return FreeQuery(wish, duration, given.get("start_date"), given.get("end_date"))


def render(value: Answer, view: View) -> Json:
    """Render the times at which a lease could start."""
    return {
        "free": [
            {
                "first_start": moment.render(opening.first),
                "last_start": moment.render(opening.last),
            }
            for opening in value.found.openings
        ],
        "until": moment.render(value.found.until),
        "lacking": value.lacking,
    }

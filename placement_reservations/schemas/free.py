"""Times at which a lease could start, on the wire."""

import dataclasses
import datetime

from placement_foundation import errors
from placement_foundation.http import query_string
from placement_foundation.http.query_string import Pairs
from placement_foundation.http.schema import Json, View, some_of
from placement_reservations.lifecycle.opening import Search
from placement_reservations.schemas import lease, moment
from placement_reservations.store.lease import Wish

NUMBERS = ("vcpus", "memory_mb", "disk_gb", "amount")
NUMBER = {"type": "string", "pattern": "^[0-9]{1,10}\\Z"}
QUERY = some_of(
    *NUMBERS,
    **dict.fromkeys((*NUMBERS, "minutes"), NUMBER),
    affinity={"enum": ["None", "True", "False"]},
    resource_properties={"type": "string", "maxLength": 10_000},
    start_date=lease.MOMENT,
    end_date=lease.MOMENT,
)
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


@query_string.parser(QUERY)
def parse_query(pairs: Pairs) -> FreeQuery:
    """Return the query.

    :raises BadRequest: a parameter is unknown, missing or malformed
    """
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


def render(value: tuple[Search, str | None], view: View) -> Json:
    """Render when a lease could start, and why not at once, if it could not."""
    found, lacking = value
    return {
        "free": [
            {
                "first_start": moment.render(opening.first),
                "last_start": moment.render(opening.last),
            }
            for opening in found.openings
        ],
        "until": moment.render(found.until),
        "lacking": lacking,
    }

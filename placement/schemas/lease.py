"""Leases of claims on the wire."""

import dataclasses
import re
from collections.abc import Sequence

from placement import errors
from placement.model.lease import Lease
from placement.model.moment import as_text
from placement.schemas import moment
from placement.schemas.allocation import EXTERNAL_ID
from placement.schemas.placing import SECONDS
from placement.schemas.record import Item, record
from placement_foundation.http import query_string
from placement_foundation.http.query_string import Pairs
from placement_foundation.http.schema import (
    TEXT,
    TEXT_OR_NULL,
    Schema,
    closed_object,
    some_of,
)

MOST = 1000
BODY = Schema(closed_object(seconds=SECONDS))
QUERY = some_of(
    project_id=EXTERNAL_ID,
    before=TEXT,
    limit={"type": "string", "pattern": "^[1-9][0-9]{0,3}$"},
    # When the last one of the page before ended, and whose it was.
    marker={"type": "string", "pattern": r"^[0-9]{1,18}_[^_\s]{1,36}$"},
)


@dataclasses.dataclass(frozen=True, slots=True)
class LeaseQuery:
    """Which leases to list, and after which one; times are in milliseconds."""

    project_id: str | None
    before: int | None
    after: tuple[int, str] | None
    limit: int


@dataclasses.dataclass(frozen=True, slots=True)
class LeasePage:
    """Some leases, and whether there may be more."""

    leases: Sequence[Lease]
    may_go_on: bool

    @property
    def marker(self) -> str | None:
        """The marker of the next page, if there may be one."""
        if not (self.leases and self.may_go_on):
            return None
        last = self.leases[-1]
        return f"{last.expires_at}_{last.consumer}"


@query_string.parser(QUERY)
def parse(pairs: Pairs) -> LeaseQuery:
    """Return the parsed query.

    :raises BadRequest: a parameter is unknown, or its value is malformed
    """
    given = dict(pairs)
    if "\0" in given.get("project_id", "") or "\0" in given.get("marker", ""):
        raise errors.BadRequest("A parameter must not have a NUL.")
    limit = int(given.get("limit", MOST))
    if limit > MOST:
        raise errors.BadRequest(f"The largest limit is {MOST}. Got: {limit}")
    before = given.get("before")
    after = re.fullmatch("([0-9]+)_(.+)", given.get("marker", ""))
    return LeaseQuery(
        given.get("project_id"),
        None if before is None else moment.parse("before", before),
        (int(after[1]), after[2]) if after else None,
        limit,
    )


ONE = {
    "consumer": TEXT,
    "expires_at": Item(TEXT, lambda lease: as_text(lease.expires_at)),
}
# Until when the allocations of a consumer last.
render = record(**ONE)
OF_MANY = record(**ONE, project_id=TEXT, consumer_type=TEXT_OR_NULL)
render_list = record(leases=[OF_MANY], marker=TEXT_OR_NULL)

"""Leases of claims."""

import dataclasses

# The id of no consumer. Earlier releases kept a row with it, as a lock.
BATON = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Lease:
    """When the allocations of a consumer end, in milliseconds since 1970."""

    consumer: str
    expires_at: int
    project_id: str | None = None
    consumer_type: str | None = None

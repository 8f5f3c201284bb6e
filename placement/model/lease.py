"""Leases of claims."""

import dataclasses

# The id of no consumer: the transaction that locks the row with it ends leases.
BATON = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Lease:
    """When the allocations of a consumer end, in milliseconds since 1970."""

    consumer: str
    expires_at: int
    project_id: str | None = None
    consumer_type: str | None = None

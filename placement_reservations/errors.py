"""The error document, and failures of other services."""

from typing import Any

from placement_foundation.errors import ServiceError
from placement_foundation.http.version import Version


def document(
    error: ServiceError, detail: str, version: Version | None, request_id: str | None
) -> dict[str, Any]:
    """Return the error document. Clients show the message and check the number."""
    return {
        "error_code": int(error.status),
        "error_message": detail or error.status.phrase,
        "error_name": int(error.status),
    }


class Failure(Exception):
    """A step in Placement or in the compute service failed; the message says why.

    ``may_pass`` means that the same step may succeed another time.
    """

    may_pass = True

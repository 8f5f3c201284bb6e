"""The error document."""

import json
from typing import Any

from placement_foundation.errors import ServiceError, UnavailableVersion
from placement_foundation.http.version import Version

# The messages used if there is nothing to name.
STOCK = {
    404: "The resource could not be found.",
    406: "Request not acceptable.",
}


def document(
    error: ServiceError, detail: str, version: Version | None, request_id: str | None
) -> dict[str, Any]:
    """Return the error document: its only member is a string that is itself JSON."""
    body: dict[str, Any] = {
        "faultcode": "Client" if error.status < 500 else "Server",
        "faultstring": detail or STOCK.get(error.status, error.status.phrase),
        "debuginfo": None,
    }
    if isinstance(error, UnavailableVersion):
        body["title"] = error.status.phrase
    return {"error_message": json.dumps(body)}

"""The root document on the wire."""

from placement.microversion import MAXIMUM, MINIMUM
from placement_foundation.http.schema import (
    TEXT,
    Json,
    View,
    closed_object,
    described,
    listed,
)


@described(
    closed_object(
        versions=listed(
            closed_object(
                id=TEXT,
                max_version=TEXT,
                min_version=TEXT,
                status=TEXT,
                links=listed(closed_object(rel=TEXT, href=TEXT)),
            )
        )
    )
)
def render_versions(value: None, view: View) -> Json:
    """Render the versions of the API. There is one, with its microversions."""
    return {
        "versions": [
            {
                "id": f"v{MINIMUM}",
                "max_version": str(MAXIMUM),
                "min_version": str(MINIMUM),
                "status": "CURRENT",
                # Relative to the document itself, wherever it is mounted.
                "links": [{"rel": "self", "href": ""}],
            }
        ]
    }

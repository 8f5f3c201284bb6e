"""The root document on the wire."""

from placement.microversion import MAXIMUM, MINIMUM
from placement_foundation.schema import Json, View


def render_versions(value: None, view: View) -> Json:
    """Render the versions of the API. There is one, and its microversions."""
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

"""The documents that are open to all."""

from collections.abc import Mapping

from placement_foundation.http.schema import Json, View
from placement_reservations import version


def render_versions(value: None, view: View) -> Json:
    """Render the versions of the API. There is only one."""
    return {
        "versions": [
            {
                "id": f"v{version.ONLY}",
                "status": "CURRENT",
                "links": [{"href": f"{view.base}/v1", "rel": "self"}],
                "min_version": str(version.ONLY),
                "max_version": str(version.ONLY),
            }
        ]
    }


def render_health(overdue: Mapping[str, int], view: View) -> Json:
    """Render the state of the service: the work that is overdue, by its kind."""
    late = overdue["overdue_events"] or overdue["expired_claims"]
    return {"status": "late" if late else "ok", **overdue}

"""The documents that are open to all."""

import dataclasses

from placement_foundation.http.schema import Json, View
from placement_reservations import version


@dataclasses.dataclass(frozen=True, slots=True)
class Health:
    """The state of the service: the work that is overdue."""

    overdue_events: int
    expired_claims: int
    debts: int


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


def render_health(value: Health, view: View) -> Json:
    """Render the state of the service."""
    late = value.overdue_events or value.expired_claims
    return {
        "status": "late" if late else "ok",
        "overdue_events": value.overdue_events,
        "expired_claims": value.expired_claims,
        "debts": value.debts,
    }

"""The documents that are open to all: the versions, and the health of the service."""

import datetime

from placement_foundation.http.operation import Connection, Reply, reading
from placement_reservations.handlers.call import Call
from placement_reservations.store import claim as claims
from placement_reservations.store import debt as debts
from placement_reservations.store import event as events

# Events that were due longer ago than this should have been run.
GRACE = datetime.timedelta(minutes=5)


def show_versions(call: Call[None]) -> Reply:
    """Answer with the versions of the API."""
    return Reply()


@reading
def show_health(call: Call[None], connection: Connection) -> Reply:
    """Answer with the overdue work; if it does, the tables can be read."""
    before = call.context.clock.now() - GRACE
    return Reply(
        {
            "overdue_events": len(events.list_due(connection, before)),
            "expired_claims": claims.count_late(connection, before),
            "debts": len(debts.list_subjects(connection)),
        }
    )

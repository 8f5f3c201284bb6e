"""Slots of hosts on the wire."""

from collections.abc import Mapping, Sequence
from typing import Any

from placement_foundation.http import query_string
from placement_foundation.http.query_string import Pairs
from placement_foundation.http.schema import TEXT, Json, View, some_of
from placement_reservations.schemas import moment
from placement_reservations.store.allocation import Slot

# The slots of hosts, keyed by host id.
ByHost = Mapping[int, Sequence[Slot]]


@query_string.parser(some_of(lease_id=TEXT, reservation_id=TEXT))
def parse_query(pairs: Pairs) -> dict[str, str]:
    """Return the lease and the reservation whose slots are requested.

    :raises BadRequest: a parameter is unknown
    """
    return dict(pairs)


def render_allocation(value: tuple[int, Sequence[Slot]], view: View) -> Json:
    """Render the slots of one host."""
    return {"allocation": _render(*value)}


def render_allocations(value: ByHost, view: View) -> Json:
    """Render the slots of hosts."""
    return {
        "allocations": [_render(host_id, slots) for host_id, slots in value.items()]
    }


def _render(host_id: int, slots: Sequence[Slot]) -> dict[str, Any]:
    return {
        "resource_id": str(host_id),
        "reservations": [
            {
                "id": slot.reservation_id,
                "lease_id": slot.lease_id,
                "start_date": moment.render(slot.interval.start),
                "end_date": moment.render(slot.interval.end),
            }
            for slot in slots
        ],
    }

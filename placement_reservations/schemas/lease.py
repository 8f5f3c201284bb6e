"""Leases on the wire."""

import dataclasses
import datetime
from collections.abc import Sequence
from typing import Any

from placement_foundation import errors
from placement_foundation.http.schema import (
    POSITIVE_INT,
    TEXT,
    Json,
    Schema,
    View,
    extend,
    listed,
    some_of,
)
from placement_reservations.capacity import Interval
from placement_reservations.lifecycle.change import Update
from placement_reservations.schemas import moment
from placement_reservations.store.lease import (
    RESOURCE_TYPE,
    Event,
    Lease,
    Reservation,
    Wish,
)

NAME = {"type": "string", "minLength": 1, "maxLength": 255}
MOMENT = {"type": "string", "maxLength": 64}

AFFINITIES: dict[object, bool | None] = {
    None: None,
    "None": None,
    True: True,
    "True": True,
    False: False,
    "False": False,
}

WISH = some_of(
    resource_type=TEXT,
    vcpus=POSITIVE_INT,
    memory_mb=POSITIVE_INT,
    disk_gb={**POSITIVE_INT, "minimum": 0},
    amount=POSITIVE_INT,
    affinity={"enum": list(AFFINITIES)},
    resource_properties={"type": ["string", "null"], "maxLength": 10_000},
)
NEW_WISH = Schema({**WISH, "required": ["vcpus", "memory_mb", "disk_gb", "amount"]})
CHANGED_WISH = Schema(extend(WISH, properties={"id": TEXT}))

# The type of a reservation decides which other members it has.
RESERVATIONS = {**listed({"type": "object"}), "maxItems": 100}

LEASE = some_of(
    name=NAME,
    start_date=MOMENT,
    end_date=MOMENT,
    before_end_date={**MOMENT, "type": ["string", "null"]},
    reservations=RESERVATIONS,
)
NEW = {
    "reservations": {**RESERVATIONS, "minItems": 1},
    # Clients send it, always empty: the times of a lease determine its events.
    "events": {"type": "array", "maxItems": 0},
}
REQUIRED = ("name", "start_date", "end_date", "reservations")
POST_LEASE = Schema(extend(LEASE, properties=NEW, required=REQUIRED))
PUT_LEASE = Schema({**LEASE, "minProperties": 1})


def parse_interval(body: Json, now: datetime.datetime) -> Interval:
    """Return the interval of a new lease.

    :raises BadRequest: a time is malformed or in the past, or the end is not after the
        start
    """
    start = moment.parse_coming(body["start_date"], now, "start_date")
    end = moment.parse(body["end_date"], now, "end_date")
    if end <= start:
        raise errors.BadRequest(
            f"end_date {body['end_date']!r} is not after the start of the lease."
        )
    return Interval(start, end)


def parse_wishes(items: Sequence[Json]) -> list[Wish]:
    """Return the wishes of the reservations of a new lease.

    :raises BadRequest: one of them is malformed, or of another type
    """
    return [_parse_wish(item) for item in items]


def _parse_wish(item: Json) -> Wish:
    if "resource_type" not in item:
        raise errors.BadRequest("resource_type of a reservation is missing.")
    _check(item, NEW_WISH)
    return Wish(**_members(item))


def _check(item: Json, schema: Schema) -> None:
    resource_type = item.get("resource_type", RESOURCE_TYPE)
    if resource_type != RESOURCE_TYPE:
        raise errors.BadRequest(
            f"The resource type {resource_type!r} is not supported: only "
            f"{RESOURCE_TYPE} is."
        )
    schema.check(item, "A reservation does not validate: ")


def parse_update(body: Json, now: datetime.datetime) -> Update:
    """Return the requested changes of a lease.

    :raises BadRequest: the request is malformed
    """
    times = {
        name: moment.parse(body[f"{name}_date"], now, f"{name}_date")
        for name in ("start", "end", "before_end")
        if body.get(f"{name}_date") is not None
    }
    changes: dict[str, dict[str, Any]] = {}
    for item in body.get("reservations", ()):
        if "id" not in item:
            raise errors.BadRequest("The id of a reservation to change is missing.")
        _check(item, CHANGED_WISH)
        if item["id"] in changes:
            raise errors.BadRequest(f"Reservation {item['id']!r} is named twice.")
        changes[item["id"]] = _members(item)
    return Update(body.get("name"), **times, wishes=changes)


def _members(item: Json) -> dict[str, Any]:
    members: dict[str, Any] = {
        name: value
        for name, value in item.items()
        if name not in ("id", "resource_type")
    }
    if "affinity" in members:
        members["affinity"] = AFFINITIES[members["affinity"]]
    if "resource_properties" in members:
        members["resource_properties"] = members["resource_properties"] or ""
    return members


def render_lease(lease: Lease, view: View) -> Json:
    """Render one lease."""
    return {"lease": _render(lease)}


def render_leases(leases: Sequence[Lease], view: View) -> Json:
    """Render leases."""
    return {"leases": [_render(lease) for lease in leases]}


def _render(lease: Lease) -> dict[str, Any]:
    return {
        "id": lease.id,
        "name": lease.name,
        "user_id": lease.user_id,
        "project_id": lease.project_id,
        "start_date": moment.render(lease.interval.start),
        "end_date": moment.render(lease.interval.end),
        "status": lease.status,
        "degraded": lease.degraded,
        "status_reason": lease.trouble,
        "trust_id": None,
        **moment.render_stamps(lease),
        "reservations": [_render_reservation(each) for each in lease.reservations],
        "events": [_render_event(event) for event in lease.events],
    }


def _render_reservation(reservation: Reservation) -> dict[str, Any]:
    return {
        "id": reservation.id,
        "lease_id": reservation.lease_id,
        "resource_id": reservation.resource_id,
        "resource_type": RESOURCE_TYPE,
        "status": reservation.status,
        "missing_resources": reservation.lacks is not None,
        "resources_changed": reservation.resources_changed,
        **moment.render_stamps(reservation),
        **dataclasses.asdict(reservation.wish),
        "flavor_id": reservation.id,
        # Neither is created: the resource class controls access to hosts.
        "aggregate_id": None,
        "server_group_id": None,
    }


def _render_event(event: Event) -> dict[str, Any]:
    return {
        "id": event.id,
        "lease_id": event.lease_id,
        "event_type": event.event_type,
        "time": moment.render(event.time),
        "status": event.status,
        **moment.render_stamps(event),
    }

"""Rows of Blazar that cannot be carried, by name. Pure functions on these rows."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from placement_reservations import requirement, state
from placement_reservations.blazar.reading import Row, Source
from placement_reservations.db.models import LONGEST_NAME
from placement_reservations.store.host import RESERVED
from placement_reservations.store.lease import RESOURCE_TYPE

# What can be left out, besides hosts and leases by their ids.
ENDED, FLOATING_IPS = "ended", "floatingips"
EVENTS = frozenset(state.EventType)
SETTLED = {state.EventStatus.UNDONE, state.EventStatus.DONE, state.EventStatus.ERROR}
# The statuses of the start, the end and the reservations of a lease, by its state. A
# lease in error that could still start would neither start nor end.
PARTS: Mapping[str, tuple[Collection[str], Collection[str], Collection[str]]] = {
    "PENDING": ({"UNDONE"}, {"UNDONE"}, {"pending"}),
    "ACTIVE": ({"DONE"}, {"UNDONE"}, {"active"}),
    "TERMINATED": ({"DONE"}, {"DONE"}, {"deleted"}),
    "ERROR": ({"DONE", "ERROR"}, {"UNDONE", "ERROR"}, set(state.ReservationStatus)),
}
# The smallest values of a reservation.
LEAST = {"vcpus": 1, "memory_mb": 1, "disk_gb": 0, "amount": 1}
# Slots of reservations in these states are promised.
PROMISED = {state.ReservationStatus.PENDING, state.ReservationStatus.ACTIVE}


def is_wanted(lease: Row, left_out: Collection[str]) -> bool:
    """Return whether a lease is not left out."""
    ended = lease["status"] == state.LeaseStatus.TERMINATED
    return lease["id"] not in left_out and not (ended and ENDED in left_out)


def requirement_of(wish: Row) -> str:
    """Return the requirement of a reservation on its hosts, in our grammar.

    In Blazar, an empty list requires nothing, and one condition may follow ``and``.
    """
    text: str = wish["resource_properties"] or ""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text
    match document:
        case []:
            return ""
        case ["and", condition]:
            return json.dumps(condition)
        case _:
            return text


def refuse(
    source: Source, left_out: Collection[str], present: Collection[str]
) -> Iterator[str]:
    """Yield what cannot be carried, and why not.

    :param left_out: ids of hosts and leases, ``ENDED`` and ``FLOATING_IPS``
    :param present: ids of leases that were carried earlier
    """
    yield from _refuse_unknown(source, left_out)
    hosts = {row["id"]: row for row in source.hosts if row["id"] not in left_out}
    names = Counter(row["hypervisor_hostname"] for row in hosts.values())
    for host in hosts.values():
        what = f"host {host['id']} ({host['hypervisor_hostname']})"
        yield from (f"{what}: {why}" for why in _faults_of_host(source, host, names))
    if source.floating_ips and FLOATING_IPS not in left_out:
        yield (
            f"{source.floating_ips} floating IPs: this service does not lease them; "
            f"--skip {FLOATING_IPS} leaves them out"
        )
    for lease in source.leases:
        if is_wanted(lease, left_out) and lease["id"] not in present:
            what = f"lease {lease['id']} ({lease['name']})"
            faults = _faults_of_lease(source, lease, hosts)
            yield from (f"{what}: {why}" for why in faults)


def _refuse_unknown(source: Source, left_out: Collection[str]) -> Iterator[str]:
    identifiers = {row["id"] for row in (*source.hosts, *source.leases)}
    for name in sorted({*left_out} - identifiers - {ENDED, FLOATING_IPS}):
        yield f"--skip {name}: Blazar has no such host or lease"


def _faults_of_host(
    source: Source, host: Row, names: Mapping[str | None, int]
) -> Iterator[str]:
    name = host["hypervisor_hostname"]
    if not name:
        yield "it has no hypervisor_hostname"
    elif names[name] > 1:
        yield "another host has the same hypervisor_hostname"
    if len(host["hypervisor_type"]) > LONGEST_NAME:
        yield f"its hypervisor_type is longer than {LONGEST_NAME} characters"
    mine = Counter(
        row["name"]
        for row in source.capabilities
        if row["computehost_id"] == host["id"]
    )
    for capability, count in mine.items():
        if capability in RESERVED:
            yield f"its capability {capability} has the name of something else here"
        if count > 1:
            yield f"it has the capability {capability} more than once"


def _faults_of_lease(
    source: Source, lease: Row, hosts: Mapping[str, Row]
) -> Iterator[str]:
    status = lease["status"]
    if status not in state.STABLE:
        yield (
            f"it is {status}: let Blazar finish that before it is stopped, or delete "
            "the lease there"
        )
    for column in ("user_id", "project_id"):
        if not lease[column]:
            yield f"it has no {column}"
    if not lease["start_date"] < lease["end_date"]:
        yield "it does not end after its start"
    yield from _faults_of_parts(source, lease)
    reservations = source.reservations.get(lease["id"], ())
    if not reservations:
        yield "it has no reservation"
    for reservation in reservations:
        faults = _faults_of_reservation(source, reservation, hosts)
        yield from (f"reservation {reservation['id']}: {why}" for why in faults)


def _faults_of_parts(source: Source, lease: Row) -> Iterator[str]:
    """Yield which parts of a lease do not belong to its state and its times."""
    if lease["status"] not in PARTS:
        return
    start, end, reservations = PARTS[lease["status"]]
    expected: dict[str, tuple[Collection[str], Any]] = {
        state.EventType.START: (start, lease["start_date"]),
        state.EventType.END: (end, lease["end_date"]),
    }
    events = source.events.get(lease["id"], ())
    types = [each["event_type"] for each in events]
    are_once = len(types) == len({*types}) and expected.keys() <= {*types} <= EVENTS
    if not are_once or not all(_fits(each, expected) for each in events):
        shown = sorted(
            f"{each['event_type']} {each['status']} {each['time']}" for each in events
        )
        yield f"it is {lease['status']}, but its events are: {', '.join(shown)}"
    for each in source.reservations.get(lease["id"], ()):
        key, status = each["id"], each["status"]
        if status not in reservations:
            yield f"it is {lease['status']}, but its reservation {key} is {status}"


def _fits(event: Row, wanted: Mapping[str, tuple[Collection[str], Any]]) -> bool:
    """Return whether an event has one of some statuses, and a time: that, if named."""
    statuses, time = wanted.get(event["event_type"], (SETTLED, event["time"]))
    return event["status"] in statuses and event["time"] == time is not None


def _faults_of_reservation(
    source: Source, reservation: Row, hosts: Mapping[str, Row]
) -> Iterator[str]:
    kind, status = reservation["resource_type"], reservation["status"]
    wish = source.wishes.get(reservation["resource_id"])
    if kind != RESOURCE_TYPE:
        yield f"its type is {kind}, and only {RESOURCE_TYPE} can be carried"
        return
    if wish is None or wish["reservation_id"] != reservation["id"]:
        yield "what it reserves is not in instance_reservations"
        return
    if status == state.ReservationStatus.DELETED:
        return
    for column, least in LEAST.items():
        if wish[column] < least:
            yield f"its {column} is {wish[column]}"
    if wish["flavor_id"] not in (None, reservation["id"]):
        yield f"its flavor has another id: {wish['flavor_id']}"
    try:
        requirement.parse(requirement_of(wish))
    except requirement.Malformed as exc:
        yield str(exc)
    slots = source.slots.get(reservation["id"], {})
    for host_id in sorted({*slots} - {*hosts}, key=str):
        yield f"it has slots on host {host_id}, which is not carried"
    if status in PROMISED and sum(slots.values()) != wish["amount"]:
        yield (
            f"it has {sum(slots.values())} of {wish['amount']} slots: let Blazar heal "
            "it, or delete the lease there"
        )

"""Hosts that fail or shrink, and the leases with slots on them."""

import dataclasses
import datetime
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

import sqlalchemy as sa
from oslo_log import log

from placement_reservations import capacity, requirement, state
from placement_reservations.capacity import Holding, NotEnough, Size
from placement_reservations.lifecycle import execution, inspection, selection, sighting
from placement_reservations.lifecycle.selection import Selection
from placement_reservations.store import allocation as allocations
from placement_reservations.store import claim as claims
from placement_reservations.store import debt as debts
from placement_reservations.store import host as hosts
from placement_reservations.store import lease as leases
from placement_reservations.store.debt import Debt
from placement_reservations.store.host import Details, Host
from placement_reservations.store.lease import Lease, Reservation
from placement_reservations.world import World

LOG = log.getLogger(__name__)


def watch(world: World, between: Callable[[], None] = lambda: None) -> int | None:
    """Check all hosts, and repair the promises on them, here and in Placement.

    A host that cannot be checked is assumed to be unchanged. A lease is degraded while
    it cannot be repaired, and while more servers use it than were promised.

    :param between: called before each host, as all of them may take long
    :returns: how many servers use more than was promised; None if no host could be
        checked at all
    """
    all_hosts = world.database.read(hosts.list_hosts)
    pool = _look_at_pool(world)
    seen: dict[str, Details] = {}
    overused = 0
    reasons: dict[str, str | None] = {}
    for host in all_hosts:
        between()
        try:
            for lease_id, more, reason in inspection.inspect(world, host.name):
                overused += more
                reasons[lease_id] = reason or reasons.get(lease_id)
            seen[host.name] = sighting.look(world, host)
        except execution.FAILURES as exc:
            LOG.warning("host %s cannot be checked: %s", host.name, exc)
    world.database.write(lambda connection: _put_right(connection, world, seen, pool))
    world.database.write(lambda connection: inspection.record(connection, reasons))
    return overused if seen or not all_hosts else None


def _look_at_pool(world: World) -> set[str] | None:
    try:
        return world.compute.list_pool()
    except execution.FAILURES as exc:
        LOG.warning("the pool of reservable hosts cannot be checked: %s", exc)
        return None


def _put_right(
    connection: sa.Connection,
    world: World,
    seen: Mapping[str, Details],
    pool: set[str] | None,
) -> None:
    for host in hosts.lock_hosts(connection):
        details = seen.get(host.name)
        if details is None:
            continue
        left = details.available and _has_left(host, details, pool)
        # A host that is being removed takes no promises, however healthy it is.
        if (details == host.details and not left) or claims.find(
            connection, hosts.subject(host.name)
        ):
            continue
        if details != host.details:
            LOG.warning("host %s is now %s", host.name, details)
            hosts.update(connection, host.id, details)
        if left:
            LOG.warning("host %s is not in the pool of reservable hosts", host.name)
            debts.add(connection, Debt(hosts.subject(host.name), None, host.name))
    heal(connection, world, seen)


def _has_left(host: Host, details: Details, pool: set[str] | None) -> bool:
    """Return whether a host is not in the pool any more, as far as that is known.

    It may have been created again, outside of the pool, or another client removed it.
    """
    if pool is None:
        return not host.reservable
    return (details.service_name or details.name) not in pool


def heal(connection: sa.Connection, world: World, seen: Collection[str]) -> None:
    """Move reservations that have not started off failing hosts; mark the others.

    Promises are read once: while all hosts are locked, no other process promises more.

    :param seen: the names of the hosts to which they may move
    """
    now = world.clock.now()
    concerned = {
        each.id: (lease, each)
        for lease in leases.list_leases(connection, after=now)
        for each in lease.reservations
        if each.status != state.ReservationStatus.DELETED
    }
    all_hosts = hosts.list_hosts(connection)
    every = allocations.list_every(connection, world.rules.cleaning, now)
    lacking = _displaced(world, all_hosts, every, concerned)
    targets = [host for host in all_hosts if host.name in seen]
    for lease, reservation in concerned.values():
        lack = lacking.get(reservation.id)
        if lack and lease.status == state.LeaseStatus.PENDING:
            others = [each for each in every if each.reservation_id != reservation.id]
            chosen = Selection(targets, others, world.rules.use_of(lease.interval))
            if _move(connection, lease, reservation, chosen, lack):
                every = [*others, *chosen.list_held(reservation)]
                continue
        lacks = " ".join(each.reason for each in lack.values()) if lack else None
        if lacks != reservation.lacks:
            leases.update_reservation(connection, reservation.id, lacks=lacks)


@dataclasses.dataclass(frozen=True, slots=True)
class Lack:
    """How many slots a host cannot keep, and why."""

    count: int
    reason: str


def _displaced(
    world: World,
    known: Sequence[Host],
    every: Sequence[Holding],
    concerned: Mapping[str, tuple[Lease, Reservation]],
) -> dict[str, dict[int, Lack]]:
    """Return the slots that hosts cannot keep: by host, by reservation."""
    now = world.clock.now()

    def importance(holding: Holding) -> tuple[bool, datetime.datetime]:
        _, reservation = concerned.get(holding.reservation_id, (None, None))
        pending = reservation is not None and reservation.status == "pending"
        return pending, holding.interval.start

    # Leases that are over, but could not be ended, take room from others.
    cleaned = now + world.rules.cleaning
    held = capacity.by_host(
        each
        for each in every
        if (each.reservation_id in concerned or each.interval.end > cleaned)
        and not each.wanted
    )
    lacking: dict[str, dict[int, Lack]] = {}
    for host in known:
        there = sorted(held.get(host.id, ()), key=importance)
        counts = _count_displaced(host, there)
        for holding in there:
            count = counts.pop(holding.reservation_id, 0)
            if count and holding.reservation_id in concerned:
                why = _explain(host, holding, there)
                reason = f"Host {host.id} cannot keep {count} of its slots: it {why}."
                lack = lacking.setdefault(holding.reservation_id, {})
                lack[host.id] = Lack(count, reason)
    return lacking


def _count_displaced(host: Host, held: Sequence[Holding]) -> dict[str, int]:
    """Return how many slots a host cannot keep, keyed by reservation id."""
    if not host.reservable:
        return capacity.count_displaced(Size(), held)
    refused = [each for each in held if host.limits.list_refused(each.size)]
    kept = [each for each in held if each not in refused]
    return {
        **capacity.count_displaced(host.room, kept),
        **capacity.count_displaced(Size(), refused),
    }


def _explain(host: Host, holding: Holding, held: Sequence[Holding]) -> str:
    if not host.reservable:
        return "cannot be used now"
    others = [each for each in held if each is not holding]
    return selection.describe_lack(
        host, holding.use, holding.size, others, holding.interval
    )


def _move(
    connection: sa.Connection,
    lease: Lease,
    reservation: Reservation,
    chosen: Selection,
    lack: Mapping[int, Lack],
) -> bool:
    """Replace displaced slots of a pending reservation; return whether that worked.

    :param lack: the slots that hosts cannot keep, keyed by host id
    """
    held = allocations.count_by_host(connection, reservation.id)
    displaced = {host_id: each.count for host_id, each in lack.items()}
    kept = Counter(held) - Counter(displaced)
    required = requirement.parse(reservation.wish.resource_properties)
    chosen.hold(reservation, kept)
    try:
        slots = chosen.choose_anew(reservation, required, kept)
    except NotEnough:
        return False
    # A lease that is just starting is left alone.
    pending = state.LeaseStatus.PENDING
    if not leases.update(connection, lease.id, pending, status=pending):
        return False
    LOG.info("reservation %s moves to hosts %s", reservation.id, slots)
    size = reservation.wish.size
    allocations.delete(connection, reservation.id)
    allocations.insert(connection, reservation.id, slots, lease.interval, size)
    leases.update_reservation(
        connection, reservation.id, lacks=None, resources_changed=True
    )
    return True

"""Active leases: what Placement has for them, compared with what was promised."""

import dataclasses
import datetime
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import sqlalchemy as sa
from oslo_log import log

from placement_clients.errors import NotFound
from placement_clients.record import INVENTORIES, Inventory
from placement_foundation.observing import telemetry
from placement_reservations import measure, provider, state
from placement_reservations.lifecycle import execution, settlement
from placement_reservations.store import allocation as allocations
from placement_reservations.store import claim as claims
from placement_reservations.store import debt as debts
from placement_reservations.store import host as hosts
from placement_reservations.store import lease as leases
from placement_reservations.store.debt import Debt
from placement_reservations.world import World

LOG = log.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Promise:
    """The slots of a reservation on a host."""

    host: str
    lease_id: str
    reservation_id: str
    total: int

    @property
    def resource_class(self) -> str:
        """Return the resource class of the slots."""
        return leases.resource_class_of(self.reservation_id)

    @property
    def debt(self) -> Debt:
        """Return where to look for them."""
        subject = leases.subject(self.lease_id)
        return Debt(subject, self.reservation_id, self.host)


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """What a reservation provider has: nothing at all if it is not there."""

    is_there: bool = False
    inventories: Mapping[str, Inventory] = dataclasses.field(default_factory=dict)
    usages: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def fault(self, promise: Promise) -> str | None:
        """Return what is wrong with the slots of a promise, if anything is."""
        if not self.is_there:
            return "no_provider"
        there = self.inventories.get(promise.resource_class)
        if there is None:
            return "no_inventory"
        wanted = provider.slots(promise.total)
        return None if there == wanted else "wrong_inventory"

    def excess(self, promise: Promise) -> int:
        """Return how many servers use more than was promised."""
        return max(0, self.usages.get(promise.resource_class, 0) - promise.total)


def inspect(world: World, between: Callable[[], None] = lambda: None) -> int:
    """Look at the slots of all active leases in Placement, and repair them.

    A lease is degraded while it cannot be repaired, and while more servers use it than
    were promised: these are left alone.

    :param between: called before each host, as all of them may take long
    :returns: how many servers use more than was promised
    """
    now = world.clock.now()
    promises = world.database.read(lambda connection: _list_promises(connection, now))
    excess: dict[str, str] = {}
    seen: set[str] = set()
    overused = 0
    for host, there in _by_host(promises).items():
        between()
        try:
            found = _look(world, host)
        except execution.FAILURES as exc:
            LOG.warning("the slots on host %s cannot be checked: %s", host, exc)
            continue
        for promise in there:
            is_wrong = found.fault(promise) or found.excess(promise)
            # It may have changed or ended since it was read.
            if is_wrong and not world.database.read(partial(_stands, promise=promise)):
                continue
            seen.add(promise.lease_id)
            _repair(world, promise, found.fault(promise))
            more = found.excess(promise)
            overused += more
            if more:
                reason = (
                    f"{promise.total + more} servers use the {promise.total} slots of "
                    f"reservation {promise.reservation_id} on host {host}."
                )
                LOG.warning("lease %s: %s", promise.lease_id, reason)
                excess[promise.lease_id] = reason
    world.database.write(lambda connection: _record(connection, seen, excess))
    return overused


def _list_promises(connection: sa.Connection, now: datetime.datetime) -> list[Promise]:
    names = hosts.names_by_id(connection)
    busy = claims.list_subjects(connection)
    active = {
        each.id: lease.id
        for lease in leases.list_by_status(connection, state.LeaseStatus.ACTIVE)
        if leases.subject(lease.id) not in busy
        for each in lease.reservations
        if each.status == state.ReservationStatus.ACTIVE
    }
    return [
        Promise(
            names[held.host_id],
            active[held.reservation_id],
            held.reservation_id,
            held.count,
        )
        for held in allocations.list_all(connection, now)
        if held.reservation_id in active
    ]


def _stands(connection: sa.Connection, promise: Promise) -> bool:
    """Return whether a promise is what it was, and nobody is at work on its lease."""
    host = hosts.find_by_name(connection, promise.host)
    lease = leases.find(connection, promise.lease_id)
    if (
        host is None
        or lease is None
        or lease.status is not state.LeaseStatus.ACTIVE
        or claims.find(connection, leases.subject(lease.id))
    ):
        return False
    slots = allocations.count_by_host(connection, promise.reservation_id)
    return slots.get(host.id) == promise.total and any(
        each.id == promise.reservation_id
        and each.status is state.ReservationStatus.ACTIVE
        for each in lease.reservations
    )


def _by_host(promises: Iterable[Promise]) -> dict[str, list[Promise]]:
    found: dict[str, list[Promise]] = {}
    for promise in promises:
        found.setdefault(promise.host, []).append(promise)
    return found


def _look(world: World, host: str) -> Found:
    child = provider.find(world.placement, host)
    if child is None:
        return Found()
    try:
        known = world.placement.get_part(child.uuid, INVENTORIES)
        usages = provider.get_usages(world.placement, child)
    except NotFound:
        return Found()
    return Found(True, known.value, usages)


def _repair(world: World, promise: Promise, fault: str | None) -> None:
    if fault is None:
        return
    LOG.warning(
        "lease %s: host %s has %s for reservation %s",
        promise.lease_id,
        promise.host,
        fault.replace("_", " "),
        promise.reservation_id,
    )
    telemetry.record(measure.REPAIRS, found=fault)
    reason = f"Its slots on host {promise.host} are not in Placement as promised."

    def owe(connection: sa.Connection) -> None:
        debts.add(connection, promise.debt)
        leases.set_trouble(
            connection, promise.lease_id, reason, state.LeaseStatus.ACTIVE
        )

    world.database.write(owe)
    settlement.settle(world, promise.debt.subject)


def _record(
    connection: sa.Connection, seen: Iterable[str], excess: Mapping[str, str]
) -> None:
    owing = set(debts.list_subjects(connection))
    known = leases.list_troubles(connection, state.LeaseStatus.ACTIVE)
    for lease_id in sorted(seen):
        reason = excess.get(lease_id)
        if leases.subject(lease_id) in owing or known.get(lease_id) == reason:
            continue
        leases.set_trouble(connection, lease_id, reason, state.LeaseStatus.ACTIVE)

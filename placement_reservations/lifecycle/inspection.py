"""Active leases: their slots in Placement, compared with the promised ones."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence

import sqlalchemy as sa
from oslo_log import log

from placement_clients.record import INVENTORIES, Inventory
from placement_foundation.observing import telemetry
from placement_reservations import measure, provider, state
from placement_reservations.lifecycle import settlement
from placement_reservations.store import allocation as allocations
from placement_reservations.store import claim as claims
from placement_reservations.store import debt as debts
from placement_reservations.store import host as hosts
from placement_reservations.store import lease as leases
from placement_reservations.store.debt import Debt
from placement_reservations.world import World

LOG = log.getLogger(__name__)

ACTIVE = state.LeaseStatus.ACTIVE


@dataclasses.dataclass(frozen=True, slots=True)
class Promise:
    """The slots of a reservation on a host."""

    host: str
    lease_id: str
    reservation_id: str
    total: int

    @property
    def debt(self) -> Debt:
        """Return the debt by which the slots are repaired."""
        subject = leases.subject(self.lease_id)
        return Debt(subject, self.reservation_id, self.host)


def list_promises(connection: sa.Connection, world: World) -> dict[str, list[Promise]]:
    """Return the slots of active leases without an operation, by host name."""
    names = hosts.names_by_id(connection)
    busy = claims.list_subjects(connection)
    active = {
        each.id: lease.id
        for lease in leases.list_leases(connection, status=ACTIVE)
        if leases.subject(lease.id) not in busy
        for each in lease.reservations
        if each.status == state.ReservationStatus.ACTIVE
    }
    every = allocations.list_every(connection, world.rules.cleaning, world.clock.now())
    promises: dict[str, list[Promise]] = {}
    for held in every:
        if held.reservation_id in active and not held.wanted:
            host, lease_id = names[held.host_id], active[held.reservation_id]
            promise = Promise(host, lease_id, held.reservation_id, held.count)
            promises.setdefault(host, []).append(promise)
    return promises


def inspect(
    world: World, host: str, promises: Sequence[Promise]
) -> Iterator[tuple[str, int, str | None]]:
    """Check the slots of active leases on a host in Placement, and repair them.

    More servers than were promised are left alone.

    :returns: for each promise that stands, the id of its lease, the number of servers
        beyond the promise, and a sentence about them
    """
    if not promises:
        return
    inventories, usages = _look(world, host)

    @functools.cache
    def list_standing() -> Sequence[Promise]:
        # They may have changed or ended since they were read.
        current = world.database.read(
            lambda connection: list_promises(connection, world)
        )
        return current.get(host, [])

    for promise in promises:
        resource_class = leases.resource_class_of(promise.reservation_id)
        fault = _fault(inventories, resource_class, promise.total)
        more = max(0, usages.get(resource_class, 0) - promise.total)
        if (fault or more) and promise not in list_standing():
            continue
        if fault:
            _repair(world, promise, fault)
        reason = None
        if more:
            reason = (
                f"{promise.total + more} servers use the {promise.total} slots of "
                f"reservation {promise.reservation_id} on host {host}."
            )
            LOG.warning("lease %s: %s", promise.lease_id, reason)
        yield promise.lease_id, more, reason


def _look(
    world: World, host: str
) -> tuple[Mapping[str, Inventory] | None, Mapping[str, int]]:
    """Return the inventories of a host's slots, None without a provider; and usages."""
    child = provider.find(world.placement, host)
    with provider.MayBeGone():
        if child:
            usages = provider.get_usages(world.placement, child)
            return world.placement.get_part(child.uuid, INVENTORIES).value, usages
    return None, {}


def _fault(
    inventories: Mapping[str, Inventory] | None, resource_class: str, total: int
) -> str | None:
    """Return the fault of some slots, if they have one."""
    if inventories is None:
        return "no_provider"
    if resource_class not in inventories:
        return "no_inventory"
    promised = provider.slots(total)
    return None if inventories[resource_class] == promised else "wrong_inventory"


def _repair(world: World, promise: Promise, fault: str) -> None:
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
        leases.update(connection, promise.lease_id, ACTIVE, status_reason=reason)

    world.database.write(owe)
    settlement.settle(world, promise.debt.subject)


def record(connection: sa.Connection, reasons: Mapping[str, str | None]) -> None:
    """Store whether more servers use leases than were promised."""
    owing = set(debts.list_subjects(connection))
    troubles = leases.list_troubles(connection, ACTIVE)
    for lease_id, reason in sorted(reasons.items()):
        if leases.subject(lease_id) in owing or troubles.get(lease_id) == reason:
            continue
        leases.update(connection, lease_id, ACTIVE, status_reason=reason)

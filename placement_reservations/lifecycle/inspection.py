"""Active leases: their slots in Placement, compared with the promised ones."""

from collections.abc import Iterator, Mapping

import sqlalchemy as sa
from oslo_log import log

from placement_clients.record import INVENTORIES, Inventory
from placement_foundation.observing import telemetry
from placement_reservations import measure, provider, state
from placement_reservations.lifecycle import settlement
from placement_reservations.store import allocation as allocations
from placement_reservations.store import debt as debts
from placement_reservations.store import lease as leases
from placement_reservations.store.allocation import Promise
from placement_reservations.store.debt import Debt
from placement_reservations.world import World

LOG = log.getLogger(__name__)

ACTIVE = state.LeaseStatus.ACTIVE


def inspect(world: World, host: str) -> Iterator[tuple[str, int, str | None]]:
    """Check the slots of active leases on a host in Placement, and repair them.

    More servers than were promised are left alone.

    :returns: for each promise that stands, the id of its lease, the number of servers
        beyond the promise, and a sentence about them
    """

    def list_promises() -> list[Promise]:
        return world.database.read(
            lambda connection: allocations.list_promises(connection, host)
        )

    promises = list_promises()
    if not promises:
        return
    inventories, usages = _look(world, host)
    for promise in promises:
        resource_class = leases.resource_class_of(promise.reservation_id)
        fault = _fault(inventories, resource_class, promise.total)
        more = max(0, usages.get(resource_class, 0) - promise.total)
        # It may have changed or ended since it was read.
        if (fault or more) and promise not in list_promises():
            continue
        if fault:
            _repair(world, host, promise, fault)
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


def _repair(world: World, host: str, promise: Promise, fault: str) -> None:
    LOG.warning(
        "lease %s: host %s has %s for reservation %s",
        promise.lease_id,
        host,
        fault.replace("_", " "),
        promise.reservation_id,
    )
    telemetry.record(measure.REPAIRS, found=fault)
    reason = f"Its slots on host {host} are not in Placement as promised."

    subject = leases.subject(promise.lease_id)

    def owe(connection: sa.Connection) -> None:
        debts.add(connection, Debt(subject, promise.reservation_id, host))
        leases.update(connection, promise.lease_id, ACTIVE, status_reason=reason)

    world.database.write(owe)
    settlement.settle(world, subject)


def record(connection: sa.Connection, reasons: Mapping[str, str | None]) -> None:
    """Store whether more servers use leases than were promised."""
    owing = set(debts.list_subjects(connection))
    troubles = leases.list_troubles(connection)
    for lease_id, reason in sorted(reasons.items()):
        if leases.subject(lease_id) in owing or troubles.get(lease_id) == reason:
            continue
        leases.update(connection, lease_id, ACTIVE, status_reason=reason)

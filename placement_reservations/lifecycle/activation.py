"""Start of leases: reservation providers get the slots, and the project gets access."""

from collections.abc import Mapping

import sqlalchemy as sa
from oslo_log import log

from placement_reservations import plan, state
from placement_reservations.lifecycle import execution
from placement_reservations.store import allocation as allocations
from placement_reservations.store import debt as debts
from placement_reservations.store import event as events
from placement_reservations.store import host as hosts
from placement_reservations.store import lease as leases
from placement_reservations.store.claim import Claim
from placement_reservations.store.lease import Event
from placement_reservations.world import World

LOG = log.getLogger(__name__)

OPERATION = "start"


def start(world: World, event: Event) -> None:
    """Start a lease.

    :raises Busy: it cannot start now
    """
    proceed(
        world,
        world.database.write(
            lambda connection: execution.begin_event(
                connection, world, event, state.Lease.STARTING, OPERATION
            )
        ),
    )


def proceed(world: World, claim: Claim) -> None:
    """Continue the start of a lease, which is claimed for that."""
    lease_id = leases.id_of(claim.subject)
    try:
        plan = world.database.read(lambda connection: _plan(connection, lease_id))
        execution.run(world, claim, plan)
    except (*execution.FAILURES, execution.StillInUse) as exc:
        LOG.error("lease %s does not start: %s", lease_id, exc)
        outcome = state.Lease.ERROR, state.Reservation.ERROR, state.Event.ERROR
    else:
        outcome = state.Lease.ACTIVE, state.Reservation.ACTIVE, state.Event.DONE
    now = world.clock.now()

    def complete(connection: sa.Connection) -> None:
        lease, reservations, event = outcome
        leases.move(connection, lease_id, lease, [state.Lease.STARTING])
        leases.set_reservation_status(connection, lease_id, reservations)
        started = claim.document["event"]
        events.close(connection, started, event, now)

    execution.write(world, claim, complete)


def _plan(connection: sa.Connection, lease_id: str) -> list[plan.Step]:
    lease = leases.get(connection, lease_id)
    return [
        step
        for each in lease.reservations
        for step in plan.start(
            each, count_by_name(connection, each.id), lease.project_id
        )
    ]


def count_by_name(
    connection: sa.Connection, reservation_id: str, *, wanted: bool = False
) -> dict[str, int]:
    """Return how many slots a reservation has, keyed by host name."""
    names = hosts.names_by_id(connection)
    counts = allocations.count_by_host(connection, reservation_id, wanted=wanted)
    return {names[host_id]: count for host_id, count in counts.items()}


def list_touched(connection: sa.Connection, lease_id: str) -> Mapping[str, list[str]]:
    """Return the hosts where reservations may have inventory, by reservation."""
    touched: dict[str, dict[str, None]] = {}
    names = hosts.names_by_id(connection)
    for slot in allocations.list_slots(connection, lease_id=lease_id):
        touched.setdefault(slot.reservation_id, {})[names[slot.host_id]] = None
    for debt in debts.list_by_subject(connection, leases.subject(lease_id)):
        if debt.reservation_id and debt.hypervisor_hostname:
            there = touched.setdefault(debt.reservation_id, {})
            there[debt.hypervisor_hostname] = None
    return {reservation_id: list(there) for reservation_id, there in touched.items()}

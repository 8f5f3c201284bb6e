"""Start of leases: reservation providers get the slots, and the project gets access."""

from collections.abc import Mapping

import sqlalchemy as sa
from oslo_log import log

from placement_foundation.observing import telemetry
from placement_reservations import measure, state
from placement_reservations.lifecycle import execution, plan
from placement_reservations.store import allocation as allocations
from placement_reservations.store import claim as claims
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
    starting = state.LeaseStatus.STARTING
    proceed(world, execution.begin_event(world, event, starting, OPERATION))


def proceed(world: World, claim: Claim) -> None:
    """Continue the start of a lease, which is claimed for that.

    Failures that may pass are retried by each turn until the lease ends.
    """
    lease_id = leases.id_of(claim.subject)
    lease = world.database.read(lambda connection: leases.get(connection, lease_id))
    try:
        steps = world.database.read(lambda connection: _plan(connection, lease_id))
        execution.run(world, claim, steps)
    except execution.FAILURES as exc:
        if execution.may_pass(exc) and world.clock.now() < lease.interval.end:
            _put_off(world, claim, exc)
        else:
            reason = execution.describe(exc)
            LOG.error("lease %s does not start: %s", lease_id, reason)
            _finish(world, claim, reason)
    else:
        _finish(world, claim, None)


def _finish(world: World, claim: Claim, fault: str | None) -> None:
    """Record that a lease has started, or why it never will."""
    lease_id = leases.id_of(claim.subject)
    lease = state.LeaseStatus.ERROR if fault else state.LeaseStatus.ACTIVE
    reservations = state.ReservationStatus("error" if fault else "active")
    event = state.EventStatus.ERROR if fault else state.EventStatus.DONE

    def complete(connection: sa.Connection) -> None:
        leases.update(connection, lease_id, status=lease, status_reason=fault)
        leases.set_reservation_status(connection, lease_id, reservations)
        events.close(connection, claim.document["event"], event, world.clock.now())

    execution.write(world, claim, complete)
    _count("failed" if fault else "done")


def _put_off(world: World, claim: Claim, exc: Exception) -> None:
    """Let any process try the start again."""
    lease_id, reason = leases.id_of(claim.subject), execution.describe(exc)
    LOG.warning("lease %s did not start, and will be tried again: %s", lease_id, reason)
    now = world.clock.now()

    def work(connection: sa.Connection) -> None:
        claims.wait(connection, claim, now)
        leases.update(connection, lease_id, status_reason=reason)

    world.database.write(work)
    _count("put_off")


def _count(outcome: str) -> None:
    telemetry.record(measure.EVENTS, event=state.EventType.START, outcome=outcome)


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

"""End of leases, at their time or by a deletion."""

import datetime

import sqlalchemy as sa
from oslo_log import log

from placement_foundation import errors
from placement_foundation.observing import telemetry
from placement_reservations import measure, state
from placement_reservations.lifecycle import activation, execution, plan
from placement_reservations.store import allocation as allocations
from placement_reservations.store import claim as claims
from placement_reservations.store import debt as debts
from placement_reservations.store import event as events
from placement_reservations.store import lease as leases
from placement_reservations.store.claim import Claim
from placement_reservations.store.lease import Event, Lease
from placement_reservations.world import World

LOG = log.getLogger(__name__)

END = "end"
DELETE = "delete"
# Seconds between two checks for remaining servers while a caller waits.
LOOK_SECONDS = 1.0


def end(world: World, event: Event) -> None:
    """End a lease on its event.

    :raises Busy: it cannot end now
    """
    terminating = state.LeaseStatus.TERMINATING
    proceed(world, execution.begin_event(world, event, terminating, END))


def proceed(world: World, claim: Claim) -> None:
    """Continue the end or the deletion of a lease, which is claimed for that.

    Until patience runs out, a removal that fails is left for another attempt.
    """
    try:
        _remove(world, claim)
    except execution.FAILURES as exc:
        if _is_patient(world, claim):
            LOG.info("%s will be removed later: %s", claim.subject, exc)
            now = world.clock.now()
            world.database.write(lambda connection: claims.wait(connection, claim, now))
            outcome = "put_off"
        else:
            _fail(world, claim, exc)
            outcome = "failed"
    else:
        _succeed(world, claim)
        outcome = "done"
    if claim.operation == END:
        telemetry.record(measure.EVENTS, event=state.EventType.END, outcome=outcome)


def delete(world: World, lease_id: str) -> None:
    """Delete a lease, waiting for its servers to be gone.

    :raises NotFound: there is no such lease
    :raises Conflict: another operation is in progress on it
    :raises Unavailable: something could not be removed; the lease is in error
    """
    claim = world.database.write(lambda connection: _begin(connection, world, lease_id))
    while True:
        try:
            _remove(world, claim)
        except plan.StillInUse as exc:
            if not _is_patient(world, claim):
                _fail(world, claim, exc)
                raise errors.Conflict(f"Lease {lease_id} is in use: {exc}") from exc
            execution.renew(world, claim)
            world.clock.sleep(LOOK_SECONDS)
        except execution.FAILURES as exc:
            _fail(world, claim, exc)
            raise execution.unavailable(exc) from exc
        else:
            _succeed(world, claim)
            return


def _begin(connection: sa.Connection, world: World, lease_id: str) -> Claim:
    lease = leases.get(connection, lease_id)
    deleting = state.LeaseStatus.DELETING
    now = world.clock.now()
    document = {"since": now.isoformat()}
    subject = leases.subject(lease_id)
    # An operation whose process is gone loses its claim on the lease.
    claims.drop_expired(connection, subject, now, world.rules.claim)
    claim = execution.begin(connection, world, subject, DELETE, document)
    sources = state.sources(deleting, stable=False)
    if not leases.update(connection, lease_id, *sources, status=deleting):
        raise errors.Conflict(f"Lease {lease_id} is {lease.status}.")
    for each in lease.reservations:
        # Slots for a change that will never be completed.
        allocations.delete(connection, each.id, wanted=True)
    return claim


def _remove(world: World, claim: Claim) -> None:
    lease_id = leases.id_of(claim.subject)
    steps = world.database.read(lambda connection: _plan(connection, lease_id))
    execution.run(world, claim, steps)


def _plan(connection: sa.Connection, lease_id: str) -> list[plan.Step]:
    lease = leases.get(connection, lease_id)
    touched = activation.list_touched(connection, lease_id)
    steps: list[plan.Step] = []
    for each in lease.reservations:
        if not (each.has_started or _began(lease)):
            steps += plan.removal(each.id, each.resource_class)
        elif each.status != state.ReservationStatus.DELETED:
            steps += plan.end(each, touched.get(each.id, ()), lease.project_id)
    return steps


def _began(lease: Lease) -> bool:
    """Return whether a start of a lease has begun, even if it was interrupted."""
    event = lease.event(state.EventType.START)
    return event is not None and event.status != state.EventStatus.UNDONE


def _is_patient(world: World, claim: Claim) -> bool:
    since = datetime.datetime.fromisoformat(claim.document["since"])
    # It may have begun in the future, by a clock that has been put right.
    return abs(world.clock.now() - since) < world.rules.patience


def _succeed(world: World, claim: Claim) -> None:
    lease_id = leases.id_of(claim.subject)
    now = world.clock.now()

    def complete(connection: sa.Connection) -> None:
        debts.delete(connection, claim.subject)
        lease = leases.get(connection, lease_id)
        for each in lease.reservations:
            if _began(lease):
                allocations.begin_cleaning(
                    connection, each.id, world.rules.cleaning, now
                )
            allocations.delete(connection, each.id)
        if claim.operation == DELETE:
            leases.delete(connection, lease_id)
            return
        leases.set_reservation_status(
            connection, lease_id, state.ReservationStatus.DELETED
        )
        _close(connection, claim, state.EventStatus.DONE, now)
        over = state.LeaseStatus.TERMINATED
        leases.update(connection, lease_id, status=over, status_reason=None)

    execution.write(world, claim, complete)


def _fail(world: World, claim: Claim, exc: Exception) -> None:
    lease_id = leases.id_of(claim.subject)
    LOG.error("lease %s cannot be removed: %s", lease_id, exc)
    now = world.clock.now()

    def complete(connection: sa.Connection) -> None:
        leases.set_reservation_status(
            connection, lease_id, state.ReservationStatus.ERROR
        )
        _close(connection, claim, state.EventStatus.ERROR, now)
        error, reason = state.LeaseStatus.ERROR, execution.describe(exc)
        leases.update(connection, lease_id, status=error, status_reason=reason)

    execution.write(world, claim, complete)


def _close(
    connection: sa.Connection,
    claim: Claim,
    outcome: state.EventStatus,
    now: datetime.datetime,
) -> None:
    """Close the event of an operation that is over; for a deletion, the start event."""
    lease = leases.get(connection, leases.id_of(claim.subject))
    if claim.operation == END:
        over = [claim.document["event"]]
    else:
        # A lease to be deleted never starts, but may still end by itself.
        over = [
            event.id
            for event in lease.events
            if event.event_type == state.EventType.START
            or event.status == state.EventStatus.IN_PROGRESS
        ]
    for event_id in over:
        events.close(connection, event_id, outcome, now)

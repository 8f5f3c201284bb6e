"""Creation of leases: slots are promised, classes and flavors created."""

import datetime
import uuid
from collections.abc import Sequence

import sqlalchemy as sa

from placement_foundation import errors
from placement_reservations import state
from placement_reservations.capacity import Interval
from placement_reservations.lifecycle import (
    execution,
    opening,
    plan,
    selection,
    settlement,
    sighting,
)
from placement_reservations.lifecycle.sighting import Sight
from placement_reservations.store import allocation as allocations
from placement_reservations.store import debt as debts
from placement_reservations.store import event as events
from placement_reservations.store import lease as leases
from placement_reservations.store.claim import Claim
from placement_reservations.store.debt import Debt
from placement_reservations.store.lease import Lease, Reservation, Wish
from placement_reservations.world import World

OPERATION = "create"
# How far a refusal looks for a time at which the lease would fit.
ADVICE = datetime.timedelta(days=365)


def draft(
    name: str,
    user_id: str,
    project_id: str,
    interval: Interval,
    wishes: Sequence[Wish],
) -> Lease:
    """Return a lease that can be created."""
    lease_id = str(uuid.uuid4())
    return Lease(
        lease_id,
        name,
        user_id,
        project_id,
        interval,
        state.LeaseStatus.CREATING,
        tuple(
            Reservation(str(uuid.uuid4()), lease_id, str(uuid.uuid4()), wish)
            for wish in wishes
        ),
    )


def create(world: World, lease: Lease, before_end: datetime.datetime | None) -> None:
    """Create a lease.

    :param before_end: the time of its event before the end; None for no such event
    :raises BadRequest: the requirement on hosts is not valid
    :raises Conflict: there are not enough slots
    :raises Unavailable: Placement or the compute service failed; there is no lease
    """
    try:
        claim = sighting.promise(
            world, lambda connection, sight: _promise(connection, world, lease, sight)
        )
    except selection.NoRoom as exc:
        # No lock is held any more, so the advice may take a while.
        advice = world.database.read(
            lambda connection: _advise(connection, world, lease)
        )
        raise errors.Conflict(f"{exc} {advice}") from exc
    steps = [step for each in lease.reservations for step in plan.creation(each)]

    def complete(connection: sa.Connection) -> None:
        _complete(connection, lease, before_end)

    execution.carry_out(world, claim, steps, complete, undo)


def _promise(
    connection: sa.Connection, world: World, lease: Lease, sight: Sight
) -> Claim:
    """Choose slots and store them: of two concurrent requests, the second one waits."""
    cleaning = world.rules.cleaning
    holdings = allocations.list_every(connection, cleaning, world.clock.now())
    use = world.rules.use_of(lease.interval)
    chosen = selection.Selection(sight.hosts, holdings, use)
    subject = leases.subject(lease.id)
    claim = execution.begin(connection, world, subject, OPERATION)
    leases.insert(connection, lease)
    for reservation in lease.reservations:
        wish = reservation.wish
        required = selection.parse_requirement(connection, wish.resource_properties)
        slots = sight.choose(chosen, reservation, required, {})
        sight.require(slots)
        allocations.insert(connection, reservation.id, slots, lease.interval, wish.size)
    debts.insert(connection, (Debt(subject, each.id) for each in lease.reservations))
    return claim


def _advise(connection: sa.Connection, world: World, lease: Lease) -> str:
    """Return in a sentence when a lease that does not fit could start instead."""
    interval = lease.interval
    window = Interval(interval.start, interval.start + ADVICE)
    duration = interval.end - interval.start
    wishes = [each.wish for each in lease.reservations]
    room = opening.load(connection, world, wishes, window, duration)
    found = opening.search(room, window, most=1)
    if found.openings:
        return f"It would fit from {found.openings[0].first:%Y-%m-%d %H:%M}."
    if found.until < window.end:
        return (
            f"It fits at no time up to {found.until:%Y-%m-%d %H:%M}; what comes later "
            "was not looked at."
        )
    return "It does not fit within a year."


def _complete(
    connection: sa.Connection, lease: Lease, before_end: datetime.datetime | None
) -> None:
    events.schedule(connection, lease, lease.interval, before_end)
    creating = state.LeaseStatus.CREATING
    leases.update(connection, lease.id, creating, status=state.LeaseStatus.PENDING)
    debts.delete(connection, leases.subject(lease.id))


def undo(world: World, claim: Claim) -> None:
    """Remove a lease whose creation failed."""
    lease_id = leases.id_of(claim.subject)
    execution.write(
        world, claim, lambda connection: leases.delete(connection, lease_id)
    )
    settlement.settle(world, claim.subject)

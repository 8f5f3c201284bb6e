"""Changes of leases: their name, their times, and how many slots they have."""

import dataclasses
import datetime
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from placement_foundation import errors
from placement_reservations import clock, requirement, state
from placement_reservations.capacity import Interval
from placement_reservations.lifecycle import (
    activation,
    execution,
    notice,
    plan,
    selection,
    settlement,
    sighting,
)
from placement_reservations.lifecycle.selection import Selection, Slots
from placement_reservations.lifecycle.sighting import Sight
from placement_reservations.store import allocation as allocations
from placement_reservations.store import debt as debts
from placement_reservations.store import event as events
from placement_reservations.store import host as hosts
from placement_reservations.store import lease as leases
from placement_reservations.store.claim import Claim
from placement_reservations.store.debt import Debt
from placement_reservations.store.lease import Lease, Reservation, Wish
from placement_reservations.world import World

OPERATION = "update"

REDUCED = (
    "Instance reservation doesn't allow to reduce/replace reserved instance slots "
    "when the reservation is in active status."
)


@dataclasses.dataclass(frozen=True, slots=True)
class Update:
    """The requested changes of a lease; None means no change.

    ``wishes`` has the members that change of the wishes of reservations, by id.
    """

    name: str | None = None
    start: datetime.datetime | None = None
    end: datetime.datetime | None = None
    before_end: datetime.datetime | None = None
    wishes: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)

    @property
    def is_only_a_name(self) -> bool:
        """Return whether the update changes nothing, or only the name."""
        return dataclasses.replace(self, name=None) == Update()


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """The lease after a change: ``changed`` are the reservations that get new slots.

    A lease without a new name keeps its own. It ``owes`` something if earlier changes,
    which failed, left debts.
    """

    lease: Lease
    name: str | None
    interval: Interval
    before_end: datetime.datetime | None
    changed: tuple[Reservation, ...]
    owes: bool = False

    def wish_before(self, reservation: Reservation) -> Wish:
        """Return the wish of a reservation before the change."""
        before = self.lease.reservations
        return next(each.wish for each in before if each.id == reservation.id)


def update(world: World, lease_id: str, wanted: Update) -> None:
    """Change a lease completely, or not at all.

    :raises NotFound: there is no such lease
    :raises BadRequest: the update is not valid
    :raises Conflict: the state of the lease does not allow it, or there are not enough
        slots
    :raises Unavailable: Placement or the compute service failed; nothing has changed
    """
    if wanted.is_only_a_name:
        if wanted.name is not None:
            world.database.write(
                lambda connection: leases.update(connection, lease_id, name=wanted.name)
            )
        return
    claim, target, steps = sighting.promise(
        world,
        lambda connection, sight: _prepare(connection, world, lease_id, wanted, sight),
    )

    def complete(connection: sa.Connection) -> None:
        # The watch locks them, too: it sees the lease before the change, or after it.
        hosts.lock_hosts(connection)
        _complete(connection, target)

    execution.carry_out(world, claim, steps, complete, undo)


def _prepare(
    connection: sa.Connection,
    world: World,
    lease_id: str,
    wanted: Update,
    sight: Sight,
) -> tuple[Claim, Target, list[plan.Step]]:
    lease = leases.get(connection, lease_id)
    subject = leases.subject(lease_id)
    owes = bool(debts.list_by_subject(connection, subject))
    target = dataclasses.replace(_aim(world, lease, wanted), owes=owes)
    document = {"was": lease.status}
    claim = execution.begin(connection, world, subject, OPERATION, document)
    updating = state.LeaseStatus.UPDATING
    sources = state.sources(updating)
    if not leases.update(connection, lease_id, *sources, status=updating):
        raise errors.Conflict(f"Lease {lease_id} is {lease.status}.")
    cleaning = world.rules.cleaning
    every = allocations.list_every(connection, cleaning, world.clock.now())
    changed = {each.id for each in target.changed}
    holdings = [each for each in every if each.reservation_id not in changed]
    chosen = Selection(sight.hosts, holdings, world.rules.use_of(target.interval))
    slots = _select(connection, chosen, target, sight)
    steps: list[plan.Step] = []
    for each in target.changed:
        steps += _want(connection, target, each, slots[each.id])
    return claim, target, steps


def _aim(world: World, lease: Lease, wanted: Update) -> Target:
    """Return the lease after the change.

    :raises BadRequest: the update is not valid
    :raises Conflict: the state of the lease does not allow it
    """
    if lease.status == state.LeaseStatus.TERMINATED:
        raise errors.Conflict("A lease that is over can only be renamed.")
    if lease.status not in state.STABLE:
        raise errors.Conflict(f"Lease {lease.id} is {lease.status}.")
    interval = _aim_interval(world, lease, wanted)
    changed = []
    for each in lease.reservations:
        wish = _aim_wish(each, wanted.wishes.get(each.id, {}))
        if wish != each.wish or interval != lease.interval:
            changed.append(dataclasses.replace(each, wish=wish))
    for unknown in set(wanted.wishes) - {each.id for each in lease.reservations}:
        raise errors.BadRequest(f"Lease {lease.id} has no reservation {unknown!r}.")
    before_end = notice.aim(world, lease, interval, wanted.before_end)
    return Target(lease, wanted.name, interval, before_end, tuple(changed))


def _aim_interval(world: World, lease: Lease, wanted: Update) -> Interval:
    old = lease.interval
    new = Interval(wanted.start or old.start, wanted.end or old.end)
    this_minute = clock.whole_minute(world.clock.now())
    if new.start != old.start and lease.has_started:
        raise errors.Conflict("The start of a lease that has started cannot change.")
    if new.start != old.start and new.start < this_minute:
        raise errors.BadRequest("The start of a lease cannot be in the past.")
    if new.end != old.end and new.end < this_minute:
        raise errors.BadRequest("The end of a lease cannot be in the past.")
    if new.end <= new.start:
        raise errors.BadRequest("The end of a lease must come after its start.")
    return new


def _aim_wish(reservation: Reservation, changes: Mapping[str, Any]) -> Wish:
    wish = dataclasses.replace(reservation.wish, **changes)
    if not reservation.has_started or wish == reservation.wish:
        return wish
    if reservation.status != state.ReservationStatus.ACTIVE:
        raise errors.Conflict(
            f"Reservation {reservation.id} is {reservation.status}, and cannot change."
        )
    if wish.amount < reservation.wish.amount:
        raise errors.Conflict(REDUCED)
    if dataclasses.replace(wish, amount=reservation.wish.amount) != reservation.wish:
        raise errors.Conflict(
            "An active reservation can change in nothing but a larger amount."
        )
    return wish


def _select(
    connection: sa.Connection, chosen: Selection, target: Target, sight: Sight
) -> dict[str, Slots]:
    """Return the slots of the reservations, keyed by reservation id.

    Slots that a reservation holds are kept if possible.

    :raises NoRoom: there are not enough slots, or the slots of a reservation that has
        started are not free all the time
    """
    held, kept, required = {}, {}, {}
    for each in target.changed:
        required[each.id] = _requirement(connection, target, each)
        held[each.id] = allocations.count_by_host(connection, each.id)
        kept[each.id] = _keep(
            chosen, target, each, required[each.id], held[each.id], sight
        )
        chosen.hold(each, kept[each.id])
    slots = {}
    for each in target.changed:
        slots[each.id] = sight.choose(chosen, each, required[each.id], kept[each.id])
        if _is_more(target, each, held[each.id], slots[each.id]):
            sight.require(slots[each.id])
    return slots


def _is_more(
    target: Target, reservation: Reservation, held: Slots, slots: Slots
) -> bool:
    """Return whether a reservation is promised slots that it does not have."""
    return (
        reservation.wish.size != target.wish_before(reservation).size
        or not target.lease.interval.covers(target.interval)
        or any(count > held.get(host_id, 0) for host_id, count in slots.items())
    )


def _requirement(
    connection: sa.Connection, target: Target, reservation: Reservation
) -> requirement.Requirement:
    text = reservation.wish.resource_properties
    if text == target.wish_before(reservation).resource_properties:
        return requirement.parse(text)
    return selection.parse_requirement(connection, text)


def _keep(
    chosen: Selection,
    target: Target,
    reservation: Reservation,
    required: requirement.Requirement,
    held: Slots,
    sight: Sight,
) -> Slots:
    if not reservation.has_started:
        kept = selection.trim(held, reservation.wish.amount)
        return kept if chosen.fits(reservation, required, kept) else {}
    longer = not target.lease.interval.covers(target.interval)
    if longer and not chosen.has_room(reservation, held):
        sight.require(held)
        raise selection.NoRoom(chosen.explain_kept(reservation, held))
    return held


def _want(
    connection: sa.Connection, target: Target, reservation: Reservation, slots: Slots
) -> list[plan.Step]:
    """Hold new slots of a reservation besides those that it has; return the plan."""
    before = activation.count_by_name(connection, reservation.id)
    wish = reservation.wish
    allocations.insert(
        connection, reservation.id, slots, target.interval, wish.size, wanted=True
    )
    subject = leases.subject(target.lease.id)
    if not reservation.has_started:
        if wish.size == target.wish_before(reservation).size:
            return []
        debts.insert(connection, [Debt(subject, reservation.id)])
        return [plan.make_flavor(reservation)]
    if reservation.status != state.ReservationStatus.ACTIVE:
        return []
    after = activation.count_by_name(connection, reservation.id, wanted=True)
    grown = {name: n for name, n in after.items() if n != before.get(name)}
    debts.insert(connection, (Debt(subject, reservation.id, name) for name in grown))
    return plan.inventories(reservation, grown)


def _complete(connection: sa.Connection, target: Target) -> None:
    lease = target.lease
    times = {"start_date": target.interval.start, "end_date": target.interval.end}
    # Its name may have been changed meanwhile.
    name = {} if target.name is None else {"name": target.name}
    cured = {} if lease.has_started else {"status_reason": None}
    leases.update(connection, lease.id, status=lease.status, **times, **name, **cured)
    for each in target.changed:
        allocations.keep_wanted(connection, each.id)
        leases.set_wish(connection, each.id, each.wish)
        if each.lacks and not each.has_started:
            # All its slots were chosen anew.
            leases.update_reservation(connection, each.id, lacks=None)
    events.schedule(connection, lease, target.interval, target.before_end)
    if not target.owes:
        # Otherwise all debts are paid later: those of this change again, harmlessly.
        debts.delete(connection, leases.subject(lease.id))


def undo(world: World, claim: Claim) -> None:
    """Restore a lease whose change failed."""
    lease_id = leases.id_of(claim.subject)

    def give_up(connection: sa.Connection) -> None:
        for each in leases.get(connection, lease_id).reservations:
            allocations.delete(connection, each.id, wanted=True)
        was = state.LeaseStatus(claim.document["was"])
        leases.update(connection, lease_id, status=was)

    execution.write(world, claim, give_up)
    settlement.settle(world, claim.subject)

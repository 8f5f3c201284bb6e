"""Payment of debts: things outside are made to agree with the tables."""

from collections.abc import Iterator

import sqlalchemy as sa
from oslo_log import log

from placement_reservations import provider, state
from placement_reservations.lifecycle import activation, execution, plan
from placement_reservations.store import claim as claims
from placement_reservations.store import debt as debts
from placement_reservations.store import host as hosts
from placement_reservations.store import lease as leases
from placement_reservations.store.claim import Claim
from placement_reservations.store.debt import Debt
from placement_reservations.store.lease import Reservation
from placement_reservations.world import World

LOG = log.getLogger(__name__)

OPERATION = "settle"


def settle(world: World, subject: str) -> None:
    """Pay the debts of a lease or a host, now if possible, or later."""
    try:
        claim = world.database.write(
            lambda connection: execution.begin(connection, world, subject, OPERATION)
        )
    except claims.Busy:
        return
    proceed(world, claim)


def proceed(world: World, claim: Claim) -> None:
    """Pay the debts of a lease or a host, which is claimed for that."""
    steps = world.database.read(lambda connection: _plan(connection, claim.subject))
    reason = None
    try:
        for step in steps:
            _pay_one(world, claim, step)
    except execution.FAILURES as exc:
        reason = execution.describe(exc)
        LOG.warning("%s will be repaired later: %s", claim.subject, reason)
    execution.write(world, claim, lambda connection: _note(connection, claim, reason))


def _note(connection: sa.Connection, claim: Claim, reason: str | None) -> None:
    """Record why debts are still there; None if they are paid."""
    lease_id, active = leases.id_of(claim.subject), state.LeaseStatus.ACTIVE
    if reason is None:
        debts.delete(connection, claim.subject)
    if lease_id in leases.list_troubles(connection):
        leases.update(connection, lease_id, active, status_reason=reason)


def _pay_one(world: World, claim: Claim, step: plan.Step) -> None:
    try:
        execution.run(world, claim, [step])
    except provider.NoHost as exc:
        # Without the host there is nothing to repair.
        LOG.info("%s: %s", claim.subject, exc)


def _plan(connection: sa.Connection, subject: str) -> list[plan.Step]:
    steps: list[plan.Step] = []
    for debt in debts.list_by_subject(connection, subject):
        steps += _pay(connection, debt)
    return steps


def _pay(connection: sa.Connection, debt: Debt) -> Iterator[plan.Step]:
    reservation = debt.reservation_id and _find(connection, debt)
    if debt.hypervisor_hostname and debt.reservation_id:
        yield from _inventory(connection, debt, reservation or None)
    elif debt.hypervisor_hostname:
        yield from _host(connection, debt)
    elif reservation:
        yield from plan.creation(reservation)
    elif debt.reservation_id:
        gone = leases.resource_class_of(debt.reservation_id)
        yield from plan.removal(debt.reservation_id, gone)


def _find(connection: sa.Connection, debt: Debt) -> Reservation | None:
    """Return the reservation of a debt, unless it is over."""
    lease = leases.find(connection, leases.id_of(debt.subject))
    for each in lease.reservations if lease else ():
        if each.id == debt.reservation_id:
            return None if each.status == state.ReservationStatus.DELETED else each
    return None


def _inventory(
    connection: sa.Connection, debt: Debt, reservation: Reservation | None
) -> Iterator[plan.Step]:
    name = debt.hypervisor_hostname or ""
    total = 0
    if reservation and reservation.status == state.ReservationStatus.ACTIVE:
        total = activation.count_by_name(connection, reservation.id).get(name, 0)
    resource_class = leases.resource_class_of(debt.reservation_id or "")
    if total:
        yield plan.create_class(resource_class)
        yield plan.set_inventory(name, resource_class, total)
    else:
        yield plan.remove_inventory(name, resource_class)


def _host(connection: sa.Connection, debt: Debt) -> Iterator[plan.Step]:
    name = debt.hypervisor_hostname or ""
    if hosts.find_by_name(connection, name):
        yield from plan.restoration(name)
    else:
        yield from plan.subtraction(name, debt.provider_uuid)

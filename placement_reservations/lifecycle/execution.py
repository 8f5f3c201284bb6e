"""Execution of plans, step by step, under a claim."""

import contextlib
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import sqlalchemy as sa
from oslo_log import log

from placement_clients.errors import Conflict, PlacementError
from placement_clients.errors import may_pass as may_pass_after
from placement_foundation import errors
from placement_reservations import state
from placement_reservations.errors import Failure
from placement_reservations.lifecycle import plan
from placement_reservations.lifecycle.plan import StillInUse
from placement_reservations.store import claim as claims
from placement_reservations.store import event as events
from placement_reservations.store import lease as leases
from placement_reservations.store.claim import Claim
from placement_reservations.store.lease import Event
from placement_reservations.world import World

LOG = log.getLogger(__name__)

# The exceptions by which Placement or the compute service reports that a step failed.
FAILURES = (PlacementError, Failure)


def begin(
    connection: sa.Connection,
    world: World,
    subject: str,
    operation: str,
    document: dict[str, Any] | None = None,
) -> Claim:
    """Claim a subject for an operation.

    :raises Busy: another operation is in progress on it
    """
    claim = Claim(subject, str(uuid.uuid4()), operation, document or {})
    claims.take(connection, claim, world.clock.now() + world.rules.claim)
    return claim


def begin_event(
    world: World, event: Event, target: state.LeaseStatus, operation: str
) -> Claim:
    """Claim a lease for the operation of an event.

    Of several processes that try, one gets the claim.

    :raises Busy: another process began the event, or the state of the lease does not
        allow it
    """
    now, lease_id = world.clock.now(), event.lease_id
    document = {"event": event.id, "since": now.isoformat()}
    subject, sources = leases.subject(lease_id), state.sources(target)

    def work(connection: sa.Connection) -> Claim:
        claim = begin(connection, world, subject, operation, document)
        begun = events.begin(connection, event, now)
        if begun and leases.update(connection, lease_id, *sources, status=target):
            return claim
        raise claims.Busy(f"Event {event.id} cannot run now.")

    return world.database.write(work)


def write(world: World, claim: Claim, work: Callable[[sa.Connection], None]) -> None:
    """Change the tables on behalf of an operation, and end it.

    :raises Lost: another process has taken over the operation; nothing is changed
    """

    def held(connection: sa.Connection) -> None:
        claims.release(connection, claim)
        work(connection)

    world.database.write(held)


def run(world: World, claim: Claim, steps: Iterable[plan.Step]) -> None:
    """Execute a plan.

    :raises Lost: another process has taken over the operation
    :raises StillInUse: something that is to be removed is still in use
    """
    for step in steps:
        renew(world, claim)
        try:
            step(world, lambda: renew(world, claim))
        except Conflict as exc:
            if exc.in_use:
                raise StillInUse(str(exc)) from exc
            raise


def carry_out(
    world: World,
    claim: Claim,
    steps: Iterable[plan.Step],
    complete: Callable[[sa.Connection], None],
    undo: Callable[[World, Claim], None],
) -> None:
    """Execute a plan, and record that it is done; undo the operation if that fails.

    :raises Lost: another process has taken over the operation
    :raises Unavailable: Placement or the compute service failed
    """
    try:
        with reported():
            run(world, claim, steps)
        write(world, claim, complete)
    except Exception as exc:
        LOG.warning("%s: %s failed: %s", claim.subject, claim.operation, exc)
        # If the transaction was committed after all, the claim is gone.
        with contextlib.suppress(claims.Lost):
            undo(world, claim)
        raise


def renew(world: World, claim: Claim) -> None:
    """Renew the claim of an operation.

    :raises Lost: another process has taken it over
    """
    expires_at = world.clock.now() + world.rules.claim
    world.database.write(lambda connection: claims.renew(connection, claim, expires_at))


def may_pass(exc: PlacementError | Failure) -> bool:
    """Return whether a step that failed may succeed later, without another plan."""
    if isinstance(exc, PlacementError):
        return may_pass_after(exc.status) or not exc.is_own
    return exc.may_pass


def describe(exc: Exception) -> str:
    """Return in a sentence why a step failed."""
    if isinstance(exc, PlacementError):
        return f"Placement refused or failed: {exc}"
    return str(exc)


def unavailable(exc: Exception) -> errors.Unavailable:
    """Return the error that reports a failed step to a caller."""
    return errors.Unavailable(describe(exc))


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Report failures to a caller.

    :raises Unavailable: Placement or the compute service failed
    """
    try:
        yield
    except FAILURES as exc:
        raise unavailable(exc) from exc

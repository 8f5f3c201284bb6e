"""Operations whose process is gone: any process that finds them ends them."""

from collections.abc import Callable

from oslo_log import log

from placement_reservations.lifecycle import (
    activation,
    change,
    creation,
    registration,
    settlement,
    termination,
)
from placement_reservations.store import claim as claims
from placement_reservations.store import debt as debts
from placement_reservations.store.claim import Claim
from placement_reservations.world import World

LOG = log.getLogger(__name__)


# Operations whose result was not promised to a caller are undone; others continue.
ENDINGS: dict[str, Callable[[World, Claim], None]] = {
    creation.OPERATION: creation.undo,
    activation.OPERATION: activation.proceed,
    termination.END: termination.proceed,
    termination.DELETE: termination.proceed,
    change.OPERATION: change.undo,
    settlement.OPERATION: settlement.proceed,
    registration.ADD: registration.undo_addition,
    registration.REMOVE: registration.undo_removal,
}


def recover(world: World) -> None:
    """End abandoned operations, and pay debts."""
    now = world.clock.now()
    for claim in world.database.read(
        lambda connection: claims.list_expired(connection, now, world.rules.claim)
    ):
        _attempt(world, claim.subject, claim)
    for subject in world.database.read(debts.list_subjects):
        _attempt(world, subject)


def _take_over(world: World, expired: Claim) -> None:
    now = world.clock.now()
    claim = world.database.write(
        lambda connection: claims.take_over(connection, expired, now, world.rules.claim)
    )
    if claim:
        LOG.info("%s: going on with %s", claim.subject, claim.operation)
        ENDINGS[claim.operation](world, claim)


def _attempt(world: World, subject: str, expired: Claim | None = None) -> None:
    """End an operation or pay debts; a failure of one does not stop the others."""
    try:
        if expired:
            _take_over(world, expired)
        else:
            settlement.settle(world, subject)
    except claims.Lost:
        LOG.info("%s: another process is working on it", subject)
    except Exception:
        LOG.exception("%s: this will be tried again", subject)

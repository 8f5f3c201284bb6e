"""Execution of plans, step by step, under a claim."""

import functools
import uuid
from collections.abc import Callable, Iterable
from typing import Any

import sqlalchemy as sa
from oslo_log import log

from placement_clients.adapter import path_of
from placement_clients.errors import Conflict, PlacementError
from placement_clients.errors import may_pass as may_pass_after
from placement_foundation import errors
from placement_reservations import plan, provider, state
from placement_reservations.compute import Compute, ComputeError
from placement_reservations.store import claim as claims
from placement_reservations.store import event as events
from placement_reservations.store import lease as leases
from placement_reservations.store.claim import Claim
from placement_reservations.store.lease import Event
from placement_reservations.world import World

LOG = log.getLogger(__name__)

# The exceptions by which Placement or the compute service reports that a step failed.
FAILURES = (PlacementError, ComputeError, provider.NoHost, provider.Misplaced)


class StillInUse(Exception):
    """Something that is to be removed is still in use; it may be free in a moment."""


def begin(
    connection: sa.Connection,
    world: World,
    subject: str,
    operation: str,
    document: Any = None,
) -> Claim:
    """Claim a subject for an operation.

    :raises Busy: another operation is in progress on it
    """
    claim = Claim(subject, str(uuid.uuid4()), operation, document)
    claims.take(connection, claim, world.clock.now() + world.rules.claim)
    return claim


def begin_event(
    connection: sa.Connection,
    world: World,
    event: Event,
    target: state.LeaseStatus,
    operation: str,
) -> Claim:
    """Claim a lease for what an event does to it.

    Of several processes that try, one gets the claim.

    :raises Busy: another process began the event, or the state of the lease does not
        allow it
    """
    now = world.clock.now()
    document = {"event": event.id, "since": now.isoformat()}
    claim = begin(
        connection, world, leases.subject(event.lease_id), operation, document
    )
    begun = events.begin(connection, event, now)
    sources = state.sources(target)
    if not begun or not leases.move(connection, event.lease_id, target, sources):
        raise claims.Busy(f"Event {event.id} cannot run now.")
    return claim


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
        LOG.debug("%s: %s", claim.subject, step)
        perform(world, step, lambda: renew(world, claim))


def renew(world: World, claim: Claim) -> None:
    """Renew the claim of an operation.

    :raises Lost: another process has taken it over
    """
    expires_at = world.clock.now() + world.rules.claim
    world.database.write(lambda connection: claims.renew(connection, claim, expires_at))


def let_go(world: World, claim: Claim) -> None:
    """Let any process continue an operation from now on.

    :raises Lost: another process has taken it over already
    """
    now = world.clock.now()
    world.database.write(lambda connection: claims.wait(connection, claim, now))


def perform(world: World, step: plan.Step, go_on: Callable[[], None]) -> None:
    """Execute one step, which may have been executed before.

    :param go_on: called before each part of a step that may take long
    """
    try:
        _perform(world, step, go_on)
    except Conflict as exc:
        if exc.in_use:
            raise StillInUse(str(exc)) from exc
        raise


def _perform(world: World, step: plan.Step, go_on: Callable[[], None]) -> None:
    compute = world.compute
    match step:
        case plan.MakeFlavor(flavor):
            compute.make_flavor(flavor)
        case plan.DeleteFlavor(flavor_id):
            compute.delete_flavor(flavor_id)
        case plan.GiveAccess(flavor_id, project_id):
            compute.give_access(flavor_id, project_id)
        case plan.TakeAccess(flavor_id, project_id):
            compute.take_access(flavor_id, project_id)
        case plan.DeleteServers(flavor_id, resource_class, hosts):
            list_left = functools.partial(
                compute.list_servers_of, flavor_id, resource_class, hosts, go_on
            )
            _delete_servers(compute, list_left, go_on)
        case plan.JoinPool(host):
            compute.join_pool(host)
        case plan.LeavePool(host, known):
            if not provider.is_another(world.placement, host, known):
                compute.leave_pool(host)
        case _:
            _perform_in_placement(world, step)


def _perform_in_placement(world: World, step: plan.Step) -> None:
    """Execute a step that concerns Placement alone."""
    placement = world.placement
    match step:
        case plan.CreateClass(name):
            _create_class(world, name)
        case plan.DeleteClass(name):
            _delete_class(world, name)
        case plan.SetInventory(host, resource_class, total):
            provider.set_total(placement, host, resource_class, total)
        case plan.RemoveInventory(host, resource_class):
            provider.remove_class(placement, host, resource_class)
        case plan.CreateProvider(host, uuid):
            provider.create(placement, host, uuid)
        case plan.EnsureProvider(host):
            provider.ensure(placement, host)
        case plan.DeleteProvider(host, known):
            provider.delete(placement, host, known)


def _create_class(world: World, name: str) -> None:
    try:
        world.placement.post(
            "/resource_classes", {"name": name}, version=provider.VERSION
        )
    except Conflict as exc:
        # An earlier attempt created it: nothing else creates a class with that name.
        if not exc.is_own:
            raise


def _delete_class(world: World, name: str) -> None:
    with provider.MayBeGone():
        world.placement.delete(
            path_of("resource_classes", name), version=provider.VERSION
        )


def _delete_servers(
    compute: Compute, list_left: Callable[[], list[str]], go_on: Callable[[], None]
) -> None:
    for server in list_left():
        go_on()
        compute.delete_server(server)
    go_on()
    left = list_left()
    if left:
        raise StillInUse(f"servers {', '.join(left)} are still there")


def may_pass(exc: Exception) -> bool:
    """Return whether a step that failed may succeed later, without another plan."""
    if isinstance(exc, ComputeError):
        return exc.may_pass
    if isinstance(exc, PlacementError):
        return may_pass_after(exc.status) or not exc.is_own
    return isinstance(exc, StillInUse | provider.Misplaced)


def describe(exc: Exception) -> str:
    """Return in a sentence why a step failed."""
    if isinstance(exc, provider.NoHost):
        return f"Placement does not know host {exc}."
    if isinstance(exc, PlacementError):
        return f"Placement refused or failed: {exc}"
    return str(exc)


def unavailable(exc: Exception) -> errors.Unavailable:
    """Return the error that reports a failed step to a caller."""
    return errors.Unavailable(describe(exc))

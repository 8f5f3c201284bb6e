"""Hosts whose capacity can be reserved: how they are added and removed."""

import uuid
from collections.abc import Mapping

import sqlalchemy as sa
from oslo_log import log

from placement_clients.errors import Conflict
from placement_foundation import errors
from placement_reservations import provider, requirement
from placement_reservations.lifecycle import execution, plan, settlement
from placement_reservations.store import allocation as allocations
from placement_reservations.store import debt as debts
from placement_reservations.store import host as hosts
from placement_reservations.store import lease as leases
from placement_reservations.store.claim import Claim
from placement_reservations.store.debt import Debt
from placement_reservations.store.host import Details, Host
from placement_reservations.world import World

LOG = log.getLogger(__name__)

ADD = "add host"
REMOVE = "remove host"


def add(world: World, name: str, capabilities: Mapping[str, str]) -> Host:
    """Make the capacity of a host reservable.

    :raises NotFound: there is no such host
    :raises BadRequest: the database cannot store a capability
    :raises Conflict: it has been added already, or has servers or a reservation
        provider
    :raises Unavailable: Placement or the compute service failed; nothing is left behind
    """
    details = _look_at(world, name)
    new_uuid = str(uuid.uuid4())
    created = Debt(hosts.subject(name), None, name, new_uuid)
    claim = world.database.write(lambda connection: _begin(connection, world, created))
    steps = plan.addition(name, new_uuid)

    def complete(connection: sa.Connection) -> None:
        hosts.insert(connection, details, capabilities)
        debts.delete(connection, claim.subject)

    try:
        execution.carry_out(world, claim, steps, complete, undo_addition)
    except errors.Unavailable as exc:
        if isinstance(exc.__cause__, Conflict):
            raise errors.Conflict(
                f"Conflict on creating resource provider {provider.name_of(name)}"
            ) from exc
        if isinstance(exc.__cause__, provider.NoHost):
            raise _no_host(name) from exc
        raise
    return world.database.read(lambda connection: hosts.get_by_name(connection, name))


def _no_host(name: str) -> errors.NotFound:
    return errors.NotFound(f"Host '{name}' not found!")


def _look_at(world: World, name: str) -> Details:
    if world.database.read(lambda connection: hosts.find_by_name(connection, name)):
        raise errors.Conflict(f"Host '{name}' already exists!")
    with execution.reported():
        details = world.compute.find_host(name)
    if details is None:
        raise _no_host(name)
    _check_empty(world, name)
    return details


def _check_empty(world: World, name: str) -> None:
    with execution.reported():
        servers = world.compute.list_servers_on(name)
    if servers:
        raise errors.Conflict(f"Servers {', '.join(servers)} found for host {name}")


def _begin(connection: sa.Connection, world: World, created: Debt) -> Claim:
    if hosts.find_by_name(connection, created.hypervisor_hostname or ""):
        raise errors.Conflict(f"Host '{created.hypervisor_hostname}' already exists!")
    debts.insert(connection, [created])
    return execution.begin(connection, world, created.subject, ADD)


def undo_addition(world: World, claim: Claim) -> None:
    """Remove a host whose addition failed."""
    execution.write(world, claim, lambda connection: None)
    settlement.settle(world, claim.subject)


def remove(world: World, identifier: str) -> None:
    """Stop making the capacity of a host reservable.

    :raises NotFound: there is no such host
    :raises Conflict: slots on it are promised, or servers run on it
    :raises Unavailable: Placement or the compute service failed; the host is still
        there
    """
    host = world.database.read(lambda connection: _get_free(connection, identifier))
    _check_empty(world, host.name)
    claim = world.database.write(
        lambda connection: _begin_removal(connection, world, identifier)
    )
    steps = plan.subtraction(host.name)

    def complete(connection: sa.Connection) -> None:
        hosts.delete(connection, host.id)
        debts.delete(connection, claim.subject)

    try:
        execution.carry_out(world, claim, steps, complete, undo_removal)
    except errors.Unavailable as exc:
        if not isinstance(exc.__cause__, plan.StillInUse):
            raise
        raise errors.Conflict(f"Can't delete host {identifier}. {exc}") from exc


def _get_free(connection: sa.Connection, identifier: str) -> Host:
    host = hosts.get(connection, identifier)
    if allocations.is_held(connection, host.id):
        raise errors.Conflict(f"Can't delete host {host.id}. The host is reserved.")
    return host


def _begin_removal(connection: sa.Connection, world: World, identifier: str) -> Claim:
    # From here on, no slots on it are promised.
    hosts.lock_hosts(connection)
    host = _get_free(connection, identifier)
    document = {"host": host.id, "reservable": host.reservable}
    subject = hosts.subject(host.name)
    claim = execution.begin(connection, world, subject, REMOVE, document)
    hosts.set_reservable(connection, host.id, False)
    debts.insert(connection, [Debt(subject, None, host.name)])
    return claim


def undo_removal(world: World, claim: Claim) -> None:
    """Restore a host whose removal failed."""
    host_id, reservable = claim.document["host"], claim.document["reservable"]
    execution.write(
        world,
        claim,
        lambda connection: hosts.set_reservable(connection, host_id, reservable),
    )
    settlement.settle(world, claim.subject)


def describe(
    world: World, identifier: str, capabilities: Mapping[str, str | None]
) -> Host:
    """Change capabilities of a host; None removes one.

    :raises NotFound: there is no such host
    :raises Conflict: reservations on the host require the current values
    """

    def work(connection: sa.Connection) -> Host:
        hosts.lock_hosts(connection)
        host = hosts.get(connection, identifier)
        named = _list_named(connection, host.id)
        for name, value in sorted(capabilities.items()):
            if name in named and value != host.capabilities.get(name):
                raise errors.Conflict(
                    f"Capability {name!r} of host {host.id} is required by a "
                    "reservation."
                )
        hosts.set_capabilities(connection, host.id, capabilities)
        return hosts.get(connection, identifier)

    return world.database.write(work)


def _list_named(connection: sa.Connection, host_id: int) -> set[str]:
    """Return the properties that reservations on a host require."""
    held = {
        slot.lease_id for slot in allocations.list_slots(connection, host_id=host_id)
    }
    return {
        comparison.name
        for lease in leases.list_leases(connection)
        if lease.id in held
        for each in lease.reservations
        for comparison in requirement.parse(each.wish.resource_properties)
    }

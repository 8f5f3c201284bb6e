"""Hosts, their capabilities, and the slots promised on them."""

from placement_foundation import errors
from placement_foundation.http.operation import Connection, Reply, reading, writing
from placement_reservations.handlers.call import Call, world_of
from placement_reservations.lifecycle import registration
from placement_reservations.schemas import host as wire
from placement_reservations.store import allocation as allocations
from placement_reservations.store import host as hosts
from placement_reservations.store.allocation import Slot
from placement_reservations.store.host import Host


@reading
def list_hosts(call: Call[None], connection: Connection) -> Reply:
    """List hosts."""
    return Reply(hosts.list_hosts(connection))


@reading
def show_host(call: Call[None], connection: Connection) -> Reply:
    """Show a host."""
    return Reply(call.load(connection))


def create_host(call: Call[None]) -> Reply:
    """Make the capacity of a host reservable.

    :raises BadRequest: a capability cannot be set
    """
    world = world_of(call)
    name = call.body["name"]
    said = wire.parse_capabilities(call.body)
    capabilities = {key: value for key, value in said.items() if value is not None}
    return Reply(registration.add(world, name, capabilities), created=True)


def update_host(call: Call[None]) -> Reply:
    """Change capabilities of a host.

    :raises BadRequest: a capability cannot be set
    """
    host: Host = call.read(call.load)
    if "name" in call.body:
        raise errors.BadRequest("'name' of a host cannot be set.")
    said = wire.parse_capabilities(call.body)
    return Reply(registration.describe(world_of(call), str(host.id), said))


def delete_host(call: Call[None]) -> Reply:
    """Stop making the capacity of a host reservable."""
    host: Host = call.read(call.load)
    registration.remove(world_of(call), str(host.id))
    return Reply()


@reading
def list_allocations(call: Call[None], connection: Connection) -> Reply:
    """List the promised slots of each host."""
    slots_by_host: dict[int, list[Slot]] = {
        host.id: [] for host in hosts.list_hosts(connection)
    }
    for slot in allocations.list_slots(connection, **call.query):
        slots_by_host[slot.host_id].append(slot)
    return Reply(slots_by_host)


@reading
def show_allocation(call: Call[None], connection: Connection) -> Reply:
    """Show the promised slots of a host."""
    host_id = call.load(connection).id
    return Reply((host_id, allocations.list_slots(connection, host_id=host_id)))


@reading
def list_properties(call: Call[None], connection: Connection) -> Reply:
    """List capabilities of hosts; private ones only on request, and if allowed.

    :raises Forbidden: the caller requests private ones, and may not see them
    """
    private = call.query.get("all", False)
    if private and not call.may("reservation:hosts:properties:list_private"):
        raise errors.Forbidden("Only administrators may see private properties.")
    properties = hosts.list_properties(connection)
    shown = [each for each in properties if private or not each.private]
    return Reply((shown, call.query.get("detail", False)))


@writing
def update_property(call: Call[None], connection: Connection) -> Reply:
    """Make a capability private, or public."""
    private = call.body["private"]
    return Reply(hosts.set_private(connection, call.path["name"], private))

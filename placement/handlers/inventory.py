"""Inventories of a provider."""

from collections.abc import Mapping

from placement import errors
from placement.model.inventory import Inventory, complain
from placement.model.resource_provider import Belongings, ResourceProvider
from placement.objects import clock, inventory, resource_provider
from placement.objects.transaction import Transaction
from placement.operation import Call
from placement.schemas import inventory as wire
from placement_foundation.http.operation import Connection, Reply, writing

OUT_OF_DATE = "resource provider generation conflict"


def list_inventories(call: Call[None]) -> Reply:
    """List all inventories of a provider."""
    provider = call.named_provider()
    value = Belongings(provider.inventories, provider.generation)
    times = provider.inventory_times
    return Reply(value, modified=clock.newest(times) if times else None)


def load_provider(
    connection: Connection, uuid: str, resource_class: str
) -> ResourceProvider:
    """Return the provider whose inventory of a class a path names.

    :raises NotFound: there is no such provider
    """
    return resource_provider.get_by_uuid(connection, uuid)


def show_inventory(call: Call[None]) -> Reply:
    """Show the inventory of one class.

    :raises NotFound: the provider has none
    """
    provider = call.named_provider()
    name = call.path["resource_class"]
    if name not in provider.inventories:
        raise errors.NotFound(f"No inventory of class {name} for {provider.uuid}")
    value = Belongings(provider.inventories[name], provider.generation)
    times = dict(zip(provider.inventories, provider.inventory_times, strict=True))
    return Reply(value, modified=clock.newest([times[name]]))


@writing
def create_inventory(
    call: Call[None], tx: Transaction, *, reserved_may_be_total: bool
) -> Reply:
    """Add the inventory in the body to a provider. The generation in it is ignored.

    :raises BadRequest: the class is unknown, or would have no capacity
    :raises ConcurrentUpdate: the provider already has an inventory of the class
    """
    provider = call.lock_provider(tx)
    name, wanted = call.body["resource_class"], wire.parse_inventory(call.body)
    failed = f"Unable to create inventory for resource provider {provider.uuid}: "
    _check_capacity(provider, {name: wanted}, failed, reserved_may_be_total)
    with (
        errors.retold(errors.NotFound, failed, errors.BadRequest),
        errors.retold(errors.ConcurrentUpdate, "Update conflict: "),
    ):
        generation = inventory.create(tx, provider, name, wanted)
    return Reply(
        Belongings(wanted, generation),
        location=wire.path(provider.uuid, name),
        modified=clock.now(),
    )


@writing
def replace_inventories(
    call: Call[None], tx: Transaction, *, reserved_may_be_total: bool
) -> Reply:
    """Replace every inventory of a provider with those in the body.

    :raises ConcurrentUpdate: the generation in the body is out of date
    :raises BadRequest: a resource class is unknown, or would have no capacity
    :raises InventoryInUse: an inventory that is left out still has allocations
    """
    provider = call.lock_provider(tx)
    resource_provider.check_generation(
        provider, call.body["resource_provider_generation"], OUT_OF_DATE
    )
    failed = f"Unable to update inventory for resource provider {provider.uuid}: "
    inventories = wire.parse_inventories(call.body["inventories"])
    _check_capacity(provider, inventories, failed, reserved_may_be_total)
    unknown = (
        f"Unknown resource class in inventory for resource provider {provider.uuid}: "
    )
    with (
        errors.retold(errors.NotFound, unknown, errors.BadRequest),
        errors.retold(
            (errors.InventoryInUse, errors.ConcurrentUpdate), "update conflict: "
        ),
    ):
        wire.check_class_names(call.body["inventories"])
        generation = inventory.replace_all(tx, provider, inventories)
    value = Belongings(inventories, generation)
    return Reply(value, modified=clock.now() if inventories else None)


@writing
def update_inventory(
    call: Call[None], tx: Transaction, *, reserved_may_be_total: bool
) -> Reply:
    """Change the inventory of one class to what is in the body.

    :raises ConcurrentUpdate: the generation in the body is out of date
    :raises BadRequest: it would have no capacity, or the provider has no such inventory
    :raises NotFound: there is no such class
    """
    provider = call.lock_provider(tx)
    resource_provider.check_generation(
        provider, call.body["resource_provider_generation"], OUT_OF_DATE
    )
    name, wanted = call.path["resource_class"], wire.parse_inventory(call.body)
    failed = f"Unable to update inventory for resource provider {provider.uuid}: "
    _check_capacity(provider, {name: wanted}, failed, reserved_may_be_total)
    with errors.retold(errors.ConcurrentUpdate, "update conflict: "):
        generation = inventory.update(tx, provider, name, wanted)
    value = Belongings(wanted, generation)
    return Reply(value, modified=clock.now())


@writing
def delete_inventory(call: Call[None], tx: Transaction) -> Reply:
    """Remove the inventory of one class.

    :raises NotFound: the provider has none
    :raises ConcurrentUpdate: it has allocations
    """
    provider = call.lock_provider(tx)
    name = call.path["resource_class"]
    with errors.retold(
        (errors.InventoryInUse, errors.ConcurrentUpdate),
        f"Unable to delete inventory of class {name}: ",
        errors.ConcurrentUpdate,
    ):
        inventory.delete(tx, provider, name)
    return Reply()


@writing
def delete_inventories(call: Call[None], tx: Transaction) -> Reply:
    """Remove all inventories of a provider.

    :raises InventoryInUse: one of them has allocations
    """
    provider = call.lock_provider(tx)
    try:
        inventory.replace_all(tx, provider, {})
    except errors.ConcurrentUpdate as exc:
        raise errors.ConcurrentUpdate(
            f"Unable to delete inventory for resource provider {provider.uuid} because "
            "the inventory was updated by another process. Please retry your request."
        ) from exc
    return Reply()


def _check_capacity(
    provider: ResourceProvider,
    wanted: Mapping[str, Inventory],
    failed: str,
    reserved_may_be_total: bool,
) -> None:
    """Check that inventories leave something to allocate.

    :param failed: the beginning of the message
    """
    for name, each in wanted.items():
        fault = complain(
            provider.uuid, name, each, reserved_may_be_total=reserved_may_be_total
        )
        if fault:
            raise errors.BadRequest(f"{failed}{fault}")

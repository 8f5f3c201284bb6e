"""Resource providers."""

from placement import errors
from placement.model.resource_provider import ProviderFilters, ResourceProvider
from placement.objects import clock, creation, reparenting, resource_provider
from placement.objects.transaction import Transaction
from placement.operation import Call
from placement.questions import providers
from placement.schemas import resource_provider as wire
from placement_foundation.http.operation import Connection, Reply, writing


def list_providers(call: Call[None]) -> Reply:
    """List the providers that the query asks for.

    :raises BadRequest: the query names a trait or resource class that is unknown
    """
    filters: ProviderFilters = call.query
    if only := providers.tree_of(filters):
        listed = providers.list_members(call.tree(only), filters)
    else:
        listed = providers.list_by_filters(call.forest(), filters)
    return Reply(listed, modified=clock.newest(each.modified for each in listed))


def load_for_deletion(connection: Connection, uuid: str) -> ResourceProvider:
    """Return the provider that is to be deleted.

    :raises NotFound: there is no such provider
    """
    missing = resource_provider.UNKNOWN_FOR_DELETE
    return resource_provider.get_by_uuid(connection, uuid, missing=missing)


def show_provider(call: Call[None]) -> Reply:
    """Show a provider."""
    provider = call.named_provider()
    return Reply(provider, modified=clock.newest([provider.modified]))


@writing
def create_provider(call: Call[None], tx: Transaction) -> Reply:
    """Create the provider in the body.

    :raises BadRequest: it has no name, or its parent is unknown or the provider itself
    :raises DuplicateName: its UUID or name is taken
    """
    name, uuid = call.body["name"], wire.parse_uuid(call.body)
    parent_uuid = call.body.get("parent_provider_uuid")
    failed = f'Unable to create resource provider "{name}", {uuid}: '
    with errors.retold(errors.BadRequest, failed):
        if not name:
            raise errors.BadRequest("name is required")
        if parent_uuid == uuid:
            raise errors.BadRequest("parent provider UUID cannot be same as UUID")
        created = creation.create(tx, uuid, name, parent_uuid)
    return Reply(created, location=wire.path(uuid), modified=clock.now())


@writing
def update_provider(
    call: Call[None], tx: Transaction, *, allow_reparenting: bool
) -> Reply:
    """Rename a provider; move it and all below it if the body names a parent.

    :raises BadRequest: it may not be moved there
    :raises DuplicateName: its new name is taken
    """
    named = call.load(tx.connection)
    if "parent_provider_uuid" in call.body:
        failed = f"Unable to save resource provider {named.uuid}: "
        with errors.retold(errors.BadRequest, failed):
            provider = reparenting.move(
                tx,
                named,
                call.body["parent_provider_uuid"],
                allow_reparenting=allow_reparenting,
            )
    else:
        provider = resource_provider.lock(tx, named)
    creation.rename(tx, provider, call.body["name"])
    updated = resource_provider.get_by_uuid(tx.connection, provider.uuid)
    return Reply(updated, modified=clock.newest([updated.modified]))


@writing
def delete_provider(call: Call[None], tx: Transaction) -> Reply:
    """Delete a provider and everything that belongs to it.

    :raises CannotDeleteParent: it has children
    :raises ProviderInUse: it has allocations
    """
    provider = resource_provider.lock(
        tx,
        call.load(tx.connection),
        missing=resource_provider.UNKNOWN_FOR_DELETE,
    )
    creation.delete(tx, provider)
    return Reply()

"""Resource providers."""

from placement import errors
from placement.model.resource_provider import ProviderFilters, ResourceProvider
from placement.objects import clock, reparenting, resource_provider
from placement.operation import Call
from placement.questions import providers
from placement.schemas import resource_provider as wire
from placement_foundation.http.operation import Later, Reply


def list_providers(call: Call[None]) -> Later:
    """List the providers that the query asks for.

    :raises BadRequest: the query names a trait or resource class that is unknown
    """
    filters: ProviderFilters = call.query
    forest = call.forest(providers.part_of(filters))

    def later() -> Reply:
        listed = providers.list_by_filters(forest, filters)
        return Reply(listed, modified=clock.newest(each.modified for each in listed))

    return later


def show_provider(call: Call[None]) -> Reply:
    """Show a provider."""
    _, provider = call.named_provider()
    return Reply(provider, modified=clock.newest([provider.modified]))


def create_provider(call: Call[None]) -> Reply:
    """Create the provider in the body.

    :raises BadRequest: it has no name, or its parent is unknown or the provider itself
    :raises DuplicateName: its UUID or name is taken
    """
    name, uuid = call.body["name"], wire.parse_uuid(call.body)
    parent_uuid = call.body.get("parent_provider_uuid")
    try:
        if not name:
            raise errors.BadRequest("name is required")
        if parent_uuid == uuid:
            raise errors.BadRequest("parent provider UUID cannot be same as UUID")
        created = resource_provider.create(call.connection, uuid, name, parent_uuid)
    except errors.BadRequest as exc:
        raise errors.BadRequest(
            f'Unable to create resource provider "{name}", {uuid}: {exc}'
        ) from exc
    return Reply(created, location=wire.path(uuid), modified=clock.now())


def update_provider(call: Call[ResourceProvider], *, allow_reparenting: bool) -> Reply:
    """Rename a provider; move it and all below it if the body names a parent.

    :raises BadRequest: it may not be moved there
    :raises DuplicateName: its new name is taken
    """
    if "parent_provider_uuid" in call.body:
        try:
            provider = reparenting.move(
                call.connection,
                call.subject,
                call.body["parent_provider_uuid"],
                allow_reparenting=allow_reparenting,
            )
        except errors.BadRequest as exc:
            raise errors.BadRequest(
                f"Unable to save resource provider {call.subject.uuid}: {exc}"
            ) from exc
    else:
        provider = resource_provider.lock(call.connection, call.subject)
    resource_provider.rename(call.connection, provider, call.body["name"])
    updated = resource_provider.get_by_uuid(call.connection, provider.uuid)
    return Reply(updated, modified=clock.newest([updated.modified]))


def delete_provider(call: Call[ResourceProvider]) -> Reply:
    """Delete a provider and everything that belongs to it.

    :raises CannotDeleteParent: it has children
    :raises ProviderInUse: it has allocations
    """
    resource_provider.delete(call.connection, call.subject)
    return Reply()

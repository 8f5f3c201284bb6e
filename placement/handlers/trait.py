"""Traits, and traits of a provider."""

from placement import errors
from placement.model.resource_provider import Belongings
from placement.model.trait import Trait
from placement.objects import clock, resource_provider, trait
from placement.objects.transaction import Transaction
from placement.operation import Call
from placement.schemas import trait as wire
from placement_foundation.http.operation import Connection, Reply, reading, writing


@reading
def list_traits(call: Call[None], connection: Connection) -> Reply:
    """List the traits that the query asks for."""
    traits = trait.list_by_filters(connection, call.query)
    return Reply(traits, modified=clock.newest(each.modified for each in traits))


@reading
def show_trait(call: Call[None], connection: Connection) -> Reply:
    """Confirm that a trait exists.

    :raises NotFound: it does not
    """
    found = trait.get_by_name(connection, call.path["name"])
    return Reply(modified=clock.newest([found.modified]))


@writing
def ensure_trait(call: Call[None], tx: Transaction) -> Reply:
    """Create a custom trait, or confirm that it exists.

    :raises BadRequest: the name is not valid for a custom trait
    """
    name = call.path["name"]
    wire.check_name(name)
    existing = trait.find_by_name(tx.connection, name)
    found = existing or trait.create(tx, name)
    return Reply(
        location=wire.path(name),
        modified=clock.newest([found.modified]),
        created=existing is None,
    )


@writing
def delete_trait(call: Call[None], tx: Transaction) -> Reply:
    """Delete a custom trait.

    :raises NotFound: there is none
    :raises BadRequest: it is a standard one
    :raises Conflict: a provider has it
    """
    found = trait.get_by_name(tx.connection, call.path["name"])
    if found.is_standard:
        raise errors.BadRequest(f"Cannot delete standard trait {found.name}.")
    trait.delete(tx, found)
    return Reply()


def list_provider_traits(call: Call[None]) -> Reply:
    """List the traits of a provider.

    :raises NotFound: there is no such provider
    """
    uuid = call.path["uuid"]
    return _listed(
        call.fetch(lambda connection: trait.load_of_provider(connection, uuid))
    )


@writing
def replace_provider_traits(call: Call[None], tx: Transaction) -> Reply:
    """Replace the traits of a provider with those in the body.

    :raises ConcurrentUpdate: the generation in the body is out of date
    :raises BadRequest: there is no such trait
    """
    provider = call.lock_provider(tx)
    resource_provider.check_generation(
        provider, call.body["resource_provider_generation"]
    )
    trait.replace_all(tx, provider, call.body["traits"])
    return _listed(trait.load_of_provider(tx.connection, provider.uuid))


def _listed(found: Belongings[list[Trait]]) -> Reply:
    return Reply(
        Belongings([each.name for each in found.parts], found.generation),
        modified=clock.newest(each.modified for each in found.parts),
    )


@writing
def delete_provider_traits(call: Call[None], tx: Transaction) -> Reply:
    """Remove all traits of a provider."""
    provider = call.lock_provider(tx)
    trait.replace_all(tx, provider, [])
    return Reply()

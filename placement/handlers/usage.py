"""Usages, of a provider and of a project."""

from placement.model.resource_provider import Belongings
from placement.model.usage import total
from placement.objects import clock, usage
from placement.operation import Call
from placement.schemas import usage as wire
from placement_foundation.http.operation import Connection, Reply, reading


def list_provider_usages(call: Call[None]) -> Reply:
    """Show how much of each inventory of a provider is used."""
    provider = call.named_provider()
    used = {name: inventory.used for name, inventory in provider.inventories.items()}
    value = Belongings(used, provider.generation)
    return Reply(value, modified=clock.now())


@reading
def list_usages(call: Call[None], connection: Connection) -> Reply:
    """Show what a project uses, by the types of its consumers."""
    owner: wire.UsageQuery = call.query
    usages = usage.by_consumer_type(connection, owner.project_id, owner.user_id)
    if owner.consumer_type == wire.ALL_TYPES and usages:
        usages = {wire.ALL_TYPES: total(usages.values())}
    elif owner.consumer_type is not None:
        usages = {
            kind: used for kind, used in usages.items() if kind == owner.consumer_type
        }
    return Reply(usages, modified=clock.now())

"""Aggregates of a provider."""

from placement import errors
from placement.model.resource_provider import Belongings
from placement.objects import aggregate, clock, resource_provider
from placement.objects.transaction import Transaction
from placement.operation import Call
from placement.schemas import aggregate as wire
from placement_foundation.http.operation import Reply, writing


def list_aggregates(call: Call[None]) -> Reply:
    """List the aggregates of a provider."""
    provider = call.named_provider()
    value = Belongings(provider.aggregate_uuids, provider.generation)
    return Reply(value, modified=clock.now())


@writing
def replace_aggregates(call: Call[None], tx: Transaction) -> Reply:
    """Put a provider into the aggregates in the body, and into no others.

    :raises ConcurrentUpdate: the generation in the body is out of date
    """
    provider = call.lock_provider(tx)
    aggregates = wire.parse_aggregates(call.body)
    if aggregates.generation is not None:
        resource_provider.check_generation(provider, aggregates.generation)
    bump = aggregates.generation is not None
    with errors.retold(errors.ConcurrentUpdate, "Update conflict: "):
        generation = aggregate.replace_all(tx, provider, aggregates.parts, bump=bump)
    value = Belongings(aggregates.parts, generation)
    return Reply(value, modified=clock.now())

"""Allocations, of consumers and of providers."""

from collections.abc import Sequence
from typing import Any

from placement import errors
from placement.model.allocation import Claim
from placement.model.resource_provider import Belongings
from placement.objects import allocation, replacing
from placement.objects.transaction import Transaction
from placement.operation import Call
from placement.schemas import allocation as wire
from placement_foundation.http.operation import Reply, writing

MISSING_PROVIDER = "Resource provider '{uuid}' not found"


def list_by_consumer(call: Call[None]) -> Reply:
    """List the allocations of a consumer: none, if there is no such consumer."""
    uuid = call.path["consumer_uuid"]
    found = call.fetch(lambda connection: allocation.list_by_consumer(connection, uuid))
    return Reply(found.allocations, modified=found.modified)


def list_by_provider(call: Call[None]) -> Reply:
    """List the allocations against a provider.

    :raises NotFound: there is no such provider
    """
    uuid = call.path["uuid"]
    generation, found = call.fetch(
        lambda connection: allocation.list_by_provider(connection, uuid)
    )
    if generation is None:
        raise errors.NotFound(MISSING_PROVIDER.format(uuid=uuid))
    return Reply(
        Belongings(found.allocations, generation),
        modified=found.modified,
    )


@writing
def replace_of_consumer(call: Call[str], tx: Transaction) -> Reply:
    """Replace all allocations of one consumer.

    :raises ConcurrentUpdate: the generation of the consumer is not that in the body
    :raises BadRequest: there is no such provider or resource class
    :raises Conflict: an amount does not fit
    """
    settings = call.context.settings
    incomplete = {
        "project_id": settings.incomplete_consumer_project_id,
        "user_id": settings.incomplete_consumer_user_id,
    }
    claim = wire.parse_claim(call.subject, {**incomplete, **call.body})
    failed = f"Unable to allocate inventory for consumer {call.subject}: "
    return _replace(call, tx, [claim], failed)


@writing
def replace_of_consumers(call: Call[None], tx: Transaction) -> Reply:
    """Replace all allocations of several consumers, together or not at all.

    :raises ConcurrentUpdate: the generation of a consumer is not that in the body
    :raises BadRequest: there is no such provider or resource class
    :raises Conflict: an amount does not fit
    """
    claims = wire.parse_claims(call.body)
    return _replace(call, tx, claims, "Unable to allocate inventory ")


def _replace(
    call: Call[Any], tx: Transaction, claims: Sequence[Claim], failed: str
) -> Reply:
    attempts = call.context.settings.allocation_conflict_retry_count
    try:
        replacing.replace_all(tx, claims, attempts=attempts)
    except errors.NotFound as exc:
        raise errors.BadRequest(f"{failed}{exc}") from exc
    return Reply()


@writing
def delete_of_consumer(call: Call[None], tx: Transaction) -> Reply:
    """Delete all allocations of a consumer.

    :raises NotFound: it has none
    """
    replacing.delete_all(tx, call.path["consumer_uuid"])
    return Reply()

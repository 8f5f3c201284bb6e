"""The reshaper: inventories and their allocations move in one step."""

from placement import errors
from placement.objects import reshaper
from placement.objects.transaction import Transaction
from placement.operation import Call
from placement.schemas import reshaper as wire
from placement_foundation.http.operation import Reply, writing


@writing
def reshape(call: Call[None], tx: Transaction) -> Reply:
    """Replace inventories of providers, and all allocations of some consumers.

    :raises UnknownProvider: a provider of the inventories does not exist
    :raises ConcurrentUpdate: the generation of a provider or consumer is not that in
        the body
    :raises BadRequest: there is no such provider or resource class
    :raises Conflict: an amount does not fit
    :raises InventoryInUse: an inventory that is left out has allocations
    """
    shapes, claims = wire.parse_shapes(call.body), wire.parse_claims(call.body)
    attempts = call.context.settings.allocation_conflict_retry_count
    failed = "malformed reshaper data: "
    with errors.retold(errors.NotFound, failed, errors.BadRequest):
        reshaper.reshape(tx, shapes, claims, attempts=attempts)
    return Reply()

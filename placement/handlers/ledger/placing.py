"""Placements: choose and claim in one request."""

from placement import errors, placing
from placement.microversion import MAXIMUM
from placement.operation import Call
from placement.placing import NoHostServes
from placement.schemas import explanation
from placement.schemas import placing as wire
from placement_foundation.http.operation import Reply
from placement_foundation.http.schema import View


def place(call: Call[None]) -> Reply:
    """Choose a candidate for each consumer and write its allocations, all or nothing.

    :raises BadRequest: the query is wrong, or names what does not exist
    :raises ConcurrentUpdate: a consumer has another project, user or type
    :raises NoRoom: fewer consumers could be placed than must be
    :raises Conflict: the database considers two different names equal
    :raises SearchExhausted: it is not known whether enough could be placed
    :raises Busy: others took every room that was found, again and again
    :raises NoLeases: leases are wanted, and the database has no table for them
    """
    order = wire.parse(call.body, call.query)
    try:
        value = placing.place(call.ledger, call.context, order)
    except NoHostServes as exc:
        document = explanation.render(exc.reasons, View(MAXIMUM))
        raise errors.NoRoom(str(exc), document) from exc
    has_written = any(not each.existed for each in value.placements)
    return Reply(value, created=has_written and not value.dry_run)

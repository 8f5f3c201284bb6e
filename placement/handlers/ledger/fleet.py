"""The fleet: all providers at once."""

from placement.objects import clock
from placement.operation import Call
from placement.questions import fleet
from placement.schemas import fleet as wire
from placement_foundation.http.operation import Reply


def list_fleet(call: Call[None]) -> Reply:
    """List the providers that the query asks for, with everything that belongs to them.

    :raises BadRequest: the query names a trait or resource class that is unknown
    """
    question: wire.Question = call.query
    moment = clock.now()
    members = fleet.read(call.connection, question.filters, question.parts)
    return Reply(wire.Fleet(members, question.fields, moment))

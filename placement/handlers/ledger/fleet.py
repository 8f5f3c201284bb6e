"""The fleet: all providers at once."""

from placement.objects import clock
from placement.objects.journal import reading
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
    # Of the same snapshot as the providers: whatever it lacks comes after the cursor.
    cursor = reading.load_cursor(call.connection)
    members = fleet.read(call.connection, question.filters, question.parts)
    place = str(cursor) if cursor else None
    return Reply(wire.Fleet(members, question.fields, moment, place))

"""Capacity: how many more of a request would fit."""

from placement.operation import Call
from placement.questions import capacity
from placement_foundation.http.operation import Reply


def show_capacity(call: Call[None]) -> Reply:
    """Show how many times a request could be claimed, in all and on each host.

    :raises BadRequest: a trait or resource class does not exist
    """
    question: capacity.CapacityQuery = call.query
    forest = call.forest()
    limits = call.context.candidates.limits
    return Reply(capacity.count(forest, question, limits))

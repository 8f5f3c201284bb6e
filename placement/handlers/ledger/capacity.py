"""Capacity: how many more of a request would fit."""

from placement.operation import Call
from placement.questions import capacity
from placement_foundation.http.operation import Later, Reply


def show_capacity(call: Call[None]) -> Later:
    """Show how many times a request could be claimed, in all and on each host.

    :raises BadRequest: a trait or resource class does not exist
    """
    question: capacity.CapacityQuery = call.query
    forest = call.forest()
    return lambda: Reply(capacity.count(forest, question))

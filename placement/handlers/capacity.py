"""Capacity: how many more of a request would fit."""

from placement.objects import count
from placement.objects.candidates import keeper
from placement.operation import Call
from placement_foundation.operation import Later, Reply


def show_capacity(call: Call[None]) -> Later:
    """Show how many times a request could be claimed, in all and on each host.

    :raises BadRequest: a trait or resource class does not exist
    """
    question: count.Question = call.query
    forest = keeper.load(call.connection)
    return lambda: Reply(count.count(forest, question))

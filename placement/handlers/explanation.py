"""Explanations: why a request finds few candidates, or none."""

from placement.objects import explaining, holder
from placement.objects.candidates import keeper
from placement.operation import Call
from placement_foundation.operation import Later, Reply


def explain(call: Call[None]) -> Later:
    """Explain what keeps hosts from serving a request, and what would help.

    :raises BadRequest: a trait or resource class does not exist
    :raises NotFound: a host that is asked about does not exist
    """
    question: explaining.Question = call.query
    forest = keeper.load(call.connection)
    holders: explaining.Holders = {}
    if question.holders:
        holders = holder.list_largest(call.connection, question.classes)
    return lambda: Reply(explaining.explain(forest, question, holders))

"""Allocation candidates: the ways to serve a request."""

from placement.objects import clock
from placement.objects.candidates import answer, keeper
from placement.objects.candidates.question import Question, order_of
from placement.operation import Call
from placement_foundation.operation import Later, Reply


def list_candidates(call: Call[None]) -> Later:
    """List ways to serve all request groups together.

    :raises BadRequest: a trait or resource class does not exist, unless the answer is
        known to be empty anyway
    """
    question: Question = call.query
    forest, order = (
        keeper.load(call.connection, question.request),
        order_of(call.settings),
    )
    return lambda: Reply(answer.answer(forest, question, order), modified=clock.now())

"""Allocation candidates: the ways to serve a request."""

from placement.objects import clock
from placement.operation import Call
from placement.questions import candidates
from placement_foundation.http.operation import Reply


def list_candidates(call: Call[None]) -> Reply:
    """List ways to serve all request groups together.

    :raises BadRequest: a trait or resource class does not exist, unless the answer is
        known to be empty anyway
    """
    question: candidates.CandidateQuery = call.query
    answer = candidates.answer(call.forest(), question, call.context.candidates)
    return Reply(answer, modified=clock.now())

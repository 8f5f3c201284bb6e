"""What the answer to a question would be after a change of the cloud."""

from collections.abc import Callable, Mapping
from typing import Any

from placement.forest import cache
from placement.objects import holder, usage
from placement.operation import Call
from placement.questions import candidate_query, candidates, capacity, what_if
from placement.questions.explanation import explanation
from placement.schemas import what_if as wire
from placement_foundation.http.operation import Later, Reply


def answer(call: Call[None]) -> Later:
    """Answer a question as if the cloud were changed as in the body.

    :raises BadRequest: the query is wrong, or the changes name what does not exist
    :raises NotFound: a host that is asked about does not exist
    """
    asked = wire.parse(call.body, call.query)
    forest = cache.load(call.connection)
    freed = usage.load_freed(call.connection, asked.world.ignore_consumers)
    respond = ANSWERS[asked.ask](call, asked.question)
    return lambda: Reply(respond(what_if.imagine(forest, asked.world, freed)))


Respond = Callable[[Any], Any]


def _candidates(call: Call[None], asked: candidate_query.CandidateQuery) -> Respond:
    order = candidate_query.order_of(call.settings)
    return lambda forest: candidates.answer(forest, asked, order)


def _explanation(call: Call[None], asked: explanation.ExplanationQuery) -> Respond:
    holders: explanation.Holders = {}
    if asked.holders:
        ignored = call.body.get("ignore_consumers", ())
        holders = holder.list_largest(call.connection, asked.classes, ignored)
    return lambda forest: explanation.explain(forest, asked, holders)


def _capacity(call: Call[None], asked: capacity.CapacityQuery) -> Respond:
    return lambda forest: capacity.count(forest, asked)


ANSWERS: Mapping[str, Callable[[Call[None], Any], Respond]] = {
    "candidates": _candidates,
    "explanation": _explanation,
    "capacity": _capacity,
}

"""Answers to questions as they would be after a change of the cloud."""

from collections.abc import Callable
from typing import Any

from placement.forest.forest import Forest
from placement.objects import allocation, holding
from placement.operation import Call
from placement.questions import candidates, capacity, name, what_if
from placement.questions.candidates import CandidateQuery
from placement.questions.explanation import explanation
from placement.questions.explanation.report import ExplanationQuery
from placement.schemas import what_if as wire
from placement_foundation.http.operation import Connection, Reply


def answer(call: Call[None]) -> Reply:
    """Answer a question as if the cloud were changed as in the body.

    :raises BadRequest: the query is wrong, or the changes name what does not exist
    :raises NotFound: a host that is asked about does not exist
    """
    question, world = wire.parse(call.body, call.query)
    order = call.context.candidates

    def load(connection: Connection) -> Callable[[], Any]:
        """Read the data; return the function that answers after the transaction."""
        forest = call.forest_of(connection)
        freed = allocation.load_freed(connection, world.ignore_consumers)

        def imagine() -> Forest:
            return what_if.imagine(forest, world, freed)

        match question:
            case CandidateQuery():
                return lambda: _find(imagine(), question, order)
            case ExplanationQuery():
                return explanation.prepare(
                    question,
                    lambda: explanation.explain(imagine(), question),
                    lambda providers: holding.list_largest(
                        connection,
                        forest.vocabulary.classes,
                        providers,
                        world.ignore_consumers,
                    ),
                )
        return lambda: capacity.count(imagine(), question, order.limits)

    return Reply(call.read(load)())


def _find(
    forest: Forest, question: CandidateQuery, order: candidates.CandidateOrder
) -> candidates.Candidates:
    name.check_all(question.request, forest.vocabulary)
    return candidates.answer(forest, question, order)

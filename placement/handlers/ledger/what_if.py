"""Answers to questions as they would be after a change of the cloud."""

from collections.abc import Callable, Mapping

from placement.forest.forest import Forest
from placement.objects import allocation, holder
from placement.operation import Call
from placement.questions import candidates, capacity, name, what_if
from placement.questions.explanation import explanation
from placement.schemas import what_if as wire
from placement_foundation.http.operation import Connection, Reply


def answer(call: Call[None]) -> Reply:
    """Answer a question as if the cloud were changed as in the body.

    :raises BadRequest: the query is wrong, or the changes name what does not exist
    :raises NotFound: a host that is asked about does not exist
    """
    asked = wire.parse(call.body, call.query)

    def load(connection: Connection) -> Answer:
        forest = call.forest_of(connection)
        freed = allocation.load_freed(connection, asked.world.ignore_consumers)
        return ANSWERS[asked.ask](
            call,
            connection,
            asked,
            lambda: what_if.imagine(forest, asked.world, freed),
        )

    return call.read(load)()


Imagine = Callable[[], Forest]
# The function that answers after the transaction.
Answer = Callable[[], Reply]


def _candidates(
    call: Call[None], connection: Connection, asked: wire.Asked, imagine: Imagine
) -> Answer:
    question: candidates.CandidateQuery = asked.question
    order = call.context.candidates

    def answer() -> Reply:
        imagined = imagine()
        name.check_all(question.request, imagined.vocabulary)
        return Reply(candidates.answer(imagined, question, order))

    return answer


def _explanation(
    call: Call[None], connection: Connection, asked: wire.Asked, imagine: Imagine
) -> Answer:
    question: explanation.ExplanationQuery = asked.question
    answer = explanation.prepare(
        question,
        lambda: explanation.explain(imagine(), question),
        lambda uuids: holder.list_largest(
            connection, uuids, question.classes, asked.world.ignore_consumers
        ),
    )
    return lambda: Reply(answer())


def _capacity(
    call: Call[None], connection: Connection, asked: wire.Asked, imagine: Imagine
) -> Answer:
    question: capacity.CapacityQuery = asked.question
    limits = call.context.candidates.limits
    return lambda: Reply(capacity.count(imagine(), question, limits))


ANSWERS: Mapping[
    str, Callable[[Call[None], Connection, wire.Asked, Imagine], Answer]
] = {
    "candidates": _candidates,
    "explanation": _explanation,
    "capacity": _capacity,
}

"""Explanations: why a request finds few candidates, or none."""

from placement.objects import holder
from placement.operation import Call
from placement.questions.explanation import explanation
from placement_foundation.http.operation import Later, Reply


def explain(call: Call[None]) -> Later:
    """Explain what keeps hosts from serving a request, and what would help.

    :raises BadRequest: a trait or resource class does not exist
    :raises NotFound: a host that is asked about does not exist
    """
    question: explanation.ExplanationQuery = call.query
    forest = call.forest()
    answer = explanation.prepare(
        question,
        lambda: explanation.explain(forest, question),
        lambda uuids: holder.list_largest(call.connection, uuids, question.classes),
    )
    return lambda: Reply(answer())

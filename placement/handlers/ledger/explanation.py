"""Explanations: why a request finds few candidates, or none."""

from collections.abc import Callable

from placement.objects import holding
from placement.operation import Call
from placement.questions.explanation import explanation
from placement.questions.explanation.report import ExplanationQuery
from placement_foundation.http.operation import Connection, Reply


def explain(call: Call[None]) -> Reply:
    """Explain what keeps hosts from serving a request, and what would help.

    :raises BadRequest: a trait or resource class does not exist
    :raises NotFound: a host that is asked about does not exist
    """
    return call.read(lambda connection: _load(call, connection))()


def _load(call: Call[None], connection: Connection) -> Callable[[], Reply]:
    """Read the data; return the function that explains after the transaction."""
    question: ExplanationQuery = call.query
    forest = call.forest_of(connection)
    answer = explanation.prepare(
        question,
        lambda: explanation.explain(forest, question),
        lambda providers: holding.list_largest(
            connection, forest.vocabulary.classes, providers
        ),
    )
    return lambda: Reply(answer())

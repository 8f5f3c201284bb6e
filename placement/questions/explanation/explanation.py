"""Making an explanation from a loaded forest. Nothing here needs the database."""

import contextlib
import dataclasses
import uuid
from collections.abc import Callable, Mapping

from placement import errors
from placement.forest.forest import Forest
from placement.questions import name
from placement.questions.explanation import report
from placement.questions.explanation.report import ExplanationQuery, Holders, Report
from placement.questions.explanation.survey import Deadline

UNKNOWN_HOST = "No resource provider with uuid or name {host} found"


def explain(forest: Forest, question: ExplanationQuery) -> Report:
    """Return an explanation of why hosts do not serve a request.

    :raises BadRequest: a trait or resource class does not exist
    :raises NotFound: one of the hosts to explain does not exist
    """
    deadline = Deadline(question.seconds)
    name.check_all(question.request, forest.vocabulary)
    hosts = tuple(_find(host, forest) for host in question.hosts)
    question = dataclasses.replace(question, hosts=hosts)
    return report.report(forest.everything, question, deadline)


def prepare(
    question: ExplanationQuery,
    explain: Callable[[], Report],
    list_holders: Callable[[Mapping[int, str]], Holders],
) -> Callable[[], Report]:
    """Return a function that returns the explanation, with holders if they are wanted.

    Only the explanation shows which inventories matter, and their holders have to be of
    the same moment: so for holders it is made here, not later.

    :param list_holders: reads those of some providers, whose UUIDs it gets by id
    """
    if not question.holders:
        return explain
    complete = explain().with_holders(list_holders)
    return lambda: complete


def _find(host: str, forest: Forest) -> str:
    """Return the UUID of a host that is given by its UUID or its name.

    The UUID may have any spelling that one can have.
    """
    if forest.tree_of(host):
        return host
    for tree in forest.everything.trees:
        for member in tree.members:
            if member.name == host:
                return member.uuid
    with contextlib.suppress(ValueError):
        plain = str(uuid.UUID(host))
        if forest.tree_of(plain):
            return plain
    raise errors.NotFound(UNKNOWN_HOST.format(host=host))

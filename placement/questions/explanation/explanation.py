"""Making an explanation from a loaded forest. Nothing here needs the database."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from placement import errors
from placement.forest.forest import Forest
from placement.model.allocation import Holder
from placement.model.request import Request
from placement.model.tree import Snapshot
from placement.questions import name
from placement.questions.explanation import finding, report
from placement.questions.explanation.constraint import Constraint
from placement.questions.explanation.finding import Verdict
from placement.questions.explanation.report import Host, Report, Wanted
from placement.questions.explanation.survey import Deadline, Survey

# The consumers that hold most of each inventory, by UUID of the provider and class.
Holders: TypeAlias = Mapping[tuple[str, str], Sequence[Holder]]

UNKNOWN_HOST = "No resource provider with uuid or name {host} found"


@dataclasses.dataclass(frozen=True, slots=True)
class ExplanationQuery:
    """A request to explain, and how much to report.

    ``wanted.hosts`` are UUIDs or names, as they were sent.
    """

    request: Request
    wanted: Wanted
    holders: bool = False

    @property
    def classes(self) -> frozenset[str]:
        """The resource classes that the request asks for."""
        return frozenset().union(*(group.resources for group in self.request.groups))


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """A host, with the verdict on each constraint."""

    host: Host
    verdicts: Mapping[Constraint, Verdict]


@dataclasses.dataclass(frozen=True, slots=True)
class Explanation:
    """A report, with details of the hosts in it.

    ``near`` is None if it was not asked for.
    """

    report: Report
    near: tuple[Judged, ...] | None
    asked: tuple[Judged, ...]
    holders: Holders


def explain(
    forest: Forest, question: ExplanationQuery, holders: Holders
) -> Explanation:
    """Return an explanation of why hosts do not serve a request.

    :raises BadRequest: a trait or resource class does not exist
    :raises NotFound: a host that is asked about does not exist
    """
    deadline = Deadline(question.wanted.seconds)
    everything = forest.everything
    if not name.are_known(question.request, forest.vocabulary):
        name.check(question.request, forest.vocabulary, everything)
    hosts = tuple(_find(host, everything) for host in question.wanted.hosts)
    asked = Survey(everything, question.request)
    wanted = dataclasses.replace(question.wanted, hosts=hosts)
    told = report.report(asked, wanted, deadline)
    return Explanation(
        told,
        None if told.near is None else _judge(asked, told.near),
        _judge(asked, told.asked),
        holders,
    )


def _find(host: str, everything: Snapshot) -> str:
    """Return the UUID of a host that is given by its UUID or its name."""
    if host in everything.tree_by_uuid:
        return host
    for tree in everything.trees:
        for member in tree.members:
            if member.name == host:
                return member.uuid
    raise errors.NotFound(UNKNOWN_HOST.format(host=host))


def _judge(asked: Survey, hosts: Sequence[Host]) -> tuple[Judged, ...]:
    verdicts = finding.judge(asked, [host.tree for host in hosts])
    return tuple(map(Judged, hosts, verdicts))

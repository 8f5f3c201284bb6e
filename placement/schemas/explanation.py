"""Explanations on the wire."""

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any

from placement import errors
from placement.explanation import finding, sentence
from placement.explanation.constraint import Constraint
from placement.explanation.finding import Finding, Verdict
from placement.explanation.report import Change, Figures, Wanted
from placement.objects.candidates import question as candidates
from placement.objects.explaining import Explanation, Judged, Question
from placement.schemas import allocation_candidate
from placement_foundation import query_string
from placement_foundation.query_string import Pairs
from placement_foundation.schema import Json, View
from placement_foundation.version import ByVersion

MOST_HOSTS = 10
# The largest that each number may be.
NUMBERS = {"changes": 100, "near": 100, "seconds": 30}

# The parameters that are ours; all others are those of a query for candidates.
OWN = (*NUMBERS, "host", "holders")
TRUTH = {"true": True, "false": False}


def parse(
    pairs: Pairs, candidates_query: Callable[[Pairs], candidates.Question]
) -> Question:
    """Return what is to be explained.

    :raises BadRequest: the query for candidates is wrong, or a parameter of ours
    """
    asked = candidates_query([pair for pair in pairs if pair[0] not in OWN])
    hosts = tuple(dict.fromkeys(query_string.values(pairs, "host")))
    if len(hosts) > MOST_HOSTS:
        raise _unexpected("host", f"{MOST_HOSTS} at most", len(hosts))
    numbers: dict[str, Any] = {
        name: _number(value, name, most)
        for name, most in NUMBERS.items()
        if (value := query_string.last(pairs, name)) is not None
    }
    holders = query_string.last(pairs, "holders") or "false"
    if holders not in TRUTH:
        raise _unexpected("holders", "true or false", holders)
    return Question(
        asked.request, Wanted(**{**numbers, "hosts": hosts}), TRUTH[holders]
    )


def _number(value: str, name: str, most: int) -> int:
    if not re.fullmatch("[0-9]{1,9}", value) or int(value) > most:
        raise _unexpected(name, f"an integer from 0 to {most}", value)
    return int(value)


def _unexpected(name: str, expected: str, got: object) -> errors.BadRequest:
    return errors.BadRequest(
        f"{query_string.COMPLAINT}Expected '{name}' to be {expected}. Got: {got}"
    )


QUERY = ByVersion(
    {
        (since.major, since.minor): functools.partial(
            parse, candidates_query=candidates_query
        )
        for since, candidates_query in zip(
            allocation_candidate.QUERY.versions(),
            allocation_candidate.QUERY.values(),
            strict=True,
        )
    }
)


def render(told: Explanation, view: View) -> Json:
    """Render an explanation, in numbers and in words."""
    report = told.report
    document = {
        "serves": report.serves,
        "hosts": report.hosts,
        "summary": sentence.summary(report),
        "constraints": [_render_figures(each) for each in report.figures],
    }
    if report.changes is not None:
        document["changes"] = [
            _render_change(change, told) for change in report.changes
        ]
    if told.near is not None:
        document["near"] = [_render_near(host, told) for host in told.near]
    if told.asked:
        document["host"] = [_render_host(host, told) for host in told.asked]
    return {**document, "complete": report.complete}


def _render_constraint(constraint: Constraint) -> Json:
    document: Json = {"id": constraint.id, "kind": constraint.kind}
    if constraint.suffix is not None:
        document["suffix"] = constraint.suffix
    if constraint.resource_class is not None:
        document["resource_class"] = constraint.resource_class
    if constraint.value is not None:
        document["value"] = constraint.value
    return document


def _render_figures(figures: Figures) -> Json:
    found = {"alone": figures.alone, "gain": figures.gain}
    if figures.smaller:
        found["largest"] = figures.smaller.amount
        found["serves_at_largest"] = figures.smaller.serves
    return {
        **_render_constraint(figures.constraint),
        "text": sentence.text(figures.constraint),
        "before": figures.before,
        "after": figures.after,
        **{name: value for name, value in found.items() if value is not None},
    }


def _render_change(change: Change, told: Explanation) -> Json:
    return {
        "drop": [constraint.id for constraint in change.dropped],
        "serves": change.serves,
        "text": sentence.change(change, told.report),
    }


def _render_name(host: Judged, told: Explanation) -> Json:
    uuid = host.host.tree.root.uuid
    return {"uuid": uuid, "name": told.names.get(uuid)}


def _render_near(host: Judged, told: Explanation) -> Json:
    findings = (_unmet(host.verdicts[each]) for each in host.host.unmet)
    return {
        **_render_name(host, told),
        "unmet": [_render_finding(each, told) for each in findings],
    }


def _unmet(verdict: Verdict) -> Finding:
    """Return what is told of a constraint that a host does not meet.

    A provider may meet it and lack something else: then the others are told of.
    """
    return verdict.closest or finding.not_alone(verdict.constraint)


def _render_host(host: Judged, told: Explanation) -> Json:
    return {
        **_render_name(host, told),
        "serves": not host.host.unmet,
        "constraints": [
            _render_verdict(verdict, constraint not in host.host.unmet, told)
            for constraint, verdict in host.verdicts.items()
        ],
    }


def _render_verdict(verdict: Verdict, met: bool, told: Explanation) -> Json:
    document: Json = {
        "id": verdict.constraint.id,
        "met": met,
        "providers": [provider.uuid for provider in verdict.meeting],
    }
    if verdict.closest and verdict.closest.provider:
        closest = _render_finding(verdict.closest, told)
        document["closest"] = {
            name: value for name, value in closest.items() if name != "id"
        }
    return document


def _render_finding(each: Finding, told: Explanation) -> Json:
    document: Json = {"id": each.constraint.id}
    if each.needs is not None:
        document["needs"] = each.needs
    if each.provider:
        document["has"] = each.has
        document["provider"] = each.provider.uuid
    if each.provider and each.stock and each.constraint.kind == "room":
        document["capacity"] = each.stock.capacity
        document["used"] = each.stock.used
        key = (each.provider.uuid, str(each.constraint.resource_class))
        if told.holders:
            document["holders"] = [
                dataclasses.asdict(holder) for holder in told.holders.get(key, ())
            ]
    return document

"""Explanations on the wire."""

import dataclasses
from typing import Any

from placement.model.constraint import Constraint, Room
from placement.questions.explanation import sentence
from placement.questions.explanation.explanation import (
    Explanation,
    ExplanationQuery,
    Judged,
)
from placement.questions.explanation.finding import Verdict
from placement.questions.explanation.report import Figures, QueryChange, Wanted
from placement.questions.explanation.smaller import Offer
from placement.schemas import own_parameter
from placement.schemas.own_parameter import Candidates, Own
from placement.schemas.query import unexpected
from placement_foundation.http import query_string
from placement_foundation.http.query_string import Pairs
from placement_foundation.http.schema import (
    INTEGER,
    TEXT,
    TEXT_OR_NULL,
    Json,
    View,
    closed_object,
    described,
    extend,
    listed,
)

MOST_HOSTS = 10
TRUTH = {"true": True, "false": False}

OWN = Own(
    numbers={"changes": 100, "near": 100, "seconds": 30},
    others={
        "host": {**listed(TEXT), "maxItems": MOST_HOSTS},
        "holders": {"type": "string", "enum": list(TRUTH)},
    },
)


def parse(pairs: Pairs, candidates: Candidates) -> ExplanationQuery:
    """Return the parsed query.

    :raises BadRequest: the query for candidates is wrong, or one of our own parameters
    """
    candidate_pairs, own = OWN.divide(pairs)
    request = candidates(candidate_pairs).request
    hosts = tuple(dict.fromkeys(query_string.values(own, "host")))
    if len(hosts) > MOST_HOSTS:
        raise unexpected("host", f"{MOST_HOSTS} at most", len(hosts))
    holders = dict(own).get("holders", "false")
    if holders not in TRUTH:
        raise unexpected("holders", "true or false", holders)
    numbers: dict[str, Any] = OWN.parse_numbers(own)
    return ExplanationQuery(request, Wanted(hosts=hosts, **numbers), TRUTH[holders])


QUERY = own_parameter.by_version(parse, OWN)

# Fields that depend on the question are not required in the document.
TRUE_OR_FALSE = {"type": "boolean"}
# The needed and the present value: the type depends on the constraint.
NEEDS = {"type": ["string", "integer", "array"]}
HAS = {"type": ["string", "integer", "array", "object", "null"]}
NAME = closed_object(uuid=TEXT, name=TEXT_OR_NULL)
CONSTRAINT = extend(
    closed_object(id=TEXT, kind=TEXT),
    properties={"suffix": TEXT, "resource_class": TEXT, "value": NEEDS},
)
FIGURES = extend(
    extend(
        CONSTRAINT,
        properties={"text": TEXT, "before": INTEGER, "after": INTEGER},
        required=("text", "before", "after"),
    ),
    properties=dict.fromkeys(
        ("alone", "gain", "largest", "serves_at_largest"), INTEGER
    ),
)
OFFER = closed_object(
    amounts=listed(closed_object(suffix=TEXT, resource_class=TEXT, amount=INTEGER)),
    serves=INTEGER,
)
CHANGE = closed_object(
    drop=listed(TEXT), serves=INTEGER, text=TEXT, offers=listed(OFFER)
)
CLOSEST = extend(
    closed_object(),
    properties={
        "needs": NEEDS,
        "has": HAS,
        "provider": TEXT,
        "capacity": INTEGER,
        "used": INTEGER,
        "total": INTEGER,
        "reserved": INTEGER,
        "allocation_ratio": {"type": "number"},
        "holders": listed(
            closed_object(
                consumer=TEXT, amount=INTEGER, type=TEXT_OR_NULL, project=TEXT_OR_NULL
            )
        ),
    },
)
FINDING = extend(
    CLOSEST, properties={"id": TEXT, "text": TEXT}, required=("id", "text")
)
NEAR = extend(NAME, properties={"unmet": listed(FINDING)}, required=("unmet",))
VERDICT = extend(
    closed_object(id=TEXT, met=TRUE_OR_FALSE, providers=listed(TEXT)),
    properties={"closest": CLOSEST, "text": TEXT},
)
HOST = extend(
    NAME,
    properties={"serves": TRUE_OR_FALSE, "constraints": listed(VERDICT)},
    required=("serves", "constraints"),
)


@described(
    extend(
        closed_object(
            serves=INTEGER,
            hosts=INTEGER,
            summary=TEXT,
            constraints=listed(FIGURES),
            complete=TRUE_OR_FALSE,
        ),
        properties={
            "changes": listed(CHANGE),
            "near": listed(NEAR),
            "host": listed(HOST),
        },
    )
)
def render(explanation: Explanation, view: View) -> Json:
    """Render an explanation, in numbers and in words."""
    report = explanation.report
    document = {
        "serves": report.serves,
        "hosts": report.hosts,
        "summary": sentence.summary(report),
        "constraints": [_render_figures(each) for each in report.figures],
    }
    if report.changes is not None:
        document["changes"] = [_render_change(change) for change in report.changes]
    if explanation.near is not None:
        document["near"] = [
            _render_near(host, explanation) for host in explanation.near
        ]
    if explanation.asked:
        document["host"] = [
            _render_host(host, explanation) for host in explanation.asked
        ]
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
    optional = {"alone": figures.alone, "gain": figures.gain}
    if figures.smaller:
        optional["largest"] = figures.smaller.amount
        optional["serves_at_largest"] = figures.smaller.serves
    return {
        **_render_constraint(figures.constraint),
        "text": figures.constraint.text(),
        "before": figures.before,
        "after": figures.after,
        **{name: value for name, value in optional.items() if value is not None},
    }


def _render_change(change: QueryChange) -> Json:
    return {
        "drop": [constraint.id for constraint in change.dropped],
        "serves": change.serves,
        "text": sentence.change(change),
        "offers": [_render_offer(change.offer)] if change.offer else [],
    }


def _render_offer(offer: Offer) -> Json:
    amounts = [
        {
            "suffix": swap.suffix,
            "resource_class": swap.resource_class,
            "amount": swap.amount,
        }
        for swap in offer.swaps
    ]
    return {"amounts": amounts, "serves": offer.serves}


def _render_name(host: Judged) -> Json:
    root = host.host.tree.root
    return {"uuid": root.uuid, "name": root.name}


def _render_near(host: Judged, explanation: Explanation) -> Json:
    verdicts = [host.verdicts[each] for each in host.host.unmet]
    return {
        **_render_name(host),
        "unmet": [
            {
                "id": each.constraint.id,
                **_render_closest(each, explanation),
                "text": sentence.unmet(each),
            }
            for each in verdicts
        ],
    }


def _render_host(host: Judged, explanation: Explanation) -> Json:
    return {
        **_render_name(host),
        "serves": not host.host.unmet,
        "constraints": [
            _render_verdict(verdict, constraint not in host.host.unmet, explanation)
            for constraint, verdict in host.verdicts.items()
        ],
    }


def _render_verdict(verdict: Verdict, met: bool, explanation: Explanation) -> Json:
    document: Json = {
        "id": verdict.constraint.id,
        "met": met,
        "providers": [provider.uuid for provider in verdict.meeting],
    }
    if not met:
        document["text"] = sentence.unmet(verdict)
    if verdict.closest:
        document["closest"] = _render_closest(verdict, explanation)
    return document


def _render_closest(verdict: Verdict, explanation: Explanation) -> Json:
    """Render the needed value, and that of the closest provider that does not meet it.

    There is none if all do, and the host lacks something else.
    """
    constraint, provider = verdict.constraint, verdict.closest
    document: Json = {}
    if constraint.needs is not None:
        document["needs"] = constraint.needs
    if provider:
        document["has"] = constraint.has(provider)
        document["provider"] = provider.uuid
        inventory = constraint.inventory_of(provider)
        if inventory and isinstance(constraint, Room):
            for name in ("capacity", "used", "total", "reserved", "allocation_ratio"):
                document[name] = getattr(inventory, name)
            key = (provider.uuid, str(constraint.resource_class))
            if explanation.holders is not None:
                document["holders"] = [
                    dataclasses.asdict(holder)
                    for holder in explanation.holders.get(key, ())
                ]
    return document

"""Explanations on the wire."""

from typing import Any

from placement.questions.explanation import sentence
from placement.questions.explanation.report import ExplanationQuery
from placement.schemas import own_parameter
from placement.schemas.own_parameter import Candidates, Own
from placement.schemas.query import unexpected
from placement.schemas.record import BOOLEAN, Item, record
from placement_foundation.http import query_string
from placement_foundation.http.query_string import Pairs
from placement_foundation.http.schema import (
    INTEGER,
    TEXT,
    TEXT_OR_NULL,
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
    return ExplanationQuery(request, hosts=hosts, holders=TRUTH[holders], **numbers)


QUERY = own_parameter.by_version(parse, OWN)

# The needed and the present value: the type depends on the constraint.
NEEDS = {"type": ["string", "integer", "array"]}
HAS = {"type": ["string", "integer", "array", "object", "null"]}
FIGURES = record(
    id=Item(TEXT, "constraint.id"),
    kind=Item(TEXT, "constraint.kind"),
    suffix=Item(TEXT, "constraint.suffix", optional=True),
    resource_class=Item(TEXT, "constraint.resource_class", optional=True),
    value=Item(NEEDS, "constraint.value", optional=True),
    text=Item(TEXT, lambda figures: figures.constraint.text()),
    before=INTEGER,
    after=INTEGER,
    alone=Item(INTEGER, optional=True),
    gain=Item(INTEGER, optional=True),
    largest=Item(INTEGER, "smaller.amount", optional="smaller"),
    serves_at_largest=Item(INTEGER, "smaller.serves", optional="smaller"),
)
AMOUNT = record(suffix=TEXT, resource_class=TEXT, amount=INTEGER)
OFFER = record(amounts=Item([AMOUNT], "swaps"), serves=INTEGER)
CHANGE = record(
    drop=Item(listed(TEXT), lambda change: [each.id for each in change.dropped]),
    serves=INTEGER,
    text=Item(TEXT, sentence.change),
    offers=Item([OFFER], lambda change: [change.offer] if change.offer else []),
)


HOLDER = record(consumer=TEXT, amount=INTEGER, type=TEXT_OR_NULL, project=TEXT_OR_NULL)
# The needed value, and that of the closest provider that does not meet it. There is
# none if all do, and the host lacks something else.
CLOSEST = {
    "needs": Item(NEEDS, "constraint.needs", optional=True),
    "has": Item(
        HAS, lambda each: each.constraint.has(each.closest), optional="closest"
    ),
    "provider": Item(TEXT, "closest.uuid", optional="closest"),
    "capacity": Item(INTEGER, "room.capacity", optional="room"),
    "used": Item(INTEGER, "room.used", optional="room"),
    "total": Item(INTEGER, "room.total", optional="room"),
    "reserved": Item(INTEGER, "room.reserved", optional="room"),
    "allocation_ratio": Item(
        {"type": "number"}, "room.allocation_ratio", optional="room"
    ),
    "holders": Item([HOLDER], optional=True),
}
ID = Item(TEXT, "constraint.id")
FINDING = record(id=ID, **CLOSEST, text=Item(TEXT, sentence.unmet))
VERDICT = record(
    id=ID,
    met=BOOLEAN,
    providers=Item(listed(TEXT), lambda each: [one.uuid for one in each.meeting]),
    text=Item(
        TEXT, lambda each: None if each.met else sentence.unmet(each), optional=True
    ),
    closest=Item(record(**CLOSEST), lambda each: each, optional="closest"),
)
NAME = {
    "uuid": Item(TEXT, "tree.root.uuid"),
    "name": Item(TEXT_OR_NULL, "tree.root.name"),
}
NEAR = record(**NAME, unmet=Item([FINDING], "lacking"))
HOST = record(
    **NAME,
    serves=Item(BOOLEAN, lambda host: not host.unmet),
    constraints=Item([VERDICT], lambda host: host.verdicts.values()),
)


# An explanation, in numbers and in words.
render = record(
    serves=Item(INTEGER, "serves"),
    hosts=Item(INTEGER, "hosts"),
    summary=Item(TEXT, sentence.summary),
    constraints=Item([FIGURES], "figures"),
    changes=Item([CHANGE], "changes", optional=True),
    near=Item([NEAR], optional=True),
    host=Item([HOST], lambda report: report.asked or None, optional=True),
    complete=Item(BOOLEAN, "complete"),
)

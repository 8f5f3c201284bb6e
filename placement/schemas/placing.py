"""Placements on the wire."""

import uuid

from placement import errors
from placement.model.moment import as_text
from placement.questions.placing.query import (
    Domains,
    Order,
    Placement,
    Preference,
    Quality,
    Spread,
    Wish,
)
from placement.schemas import own_parameter, query
from placement.schemas.allocation import CONSUMER_TYPE, EXTERNAL_ID, OWNER
from placement.schemas.own_parameter import Candidates
from placement.schemas.record import BOOLEAN, Item, record
from placement_foundation.http import query_string
from placement_foundation.http.schema import (
    INTEGER,
    TEXT,
    TEXT_OR_NULL,
    UUID,
    Json,
    Schema,
    closed_object,
    extend,
    keyed,
    listed,
    some_of,
)

# The most consumers of one request, and of others that a spread counts.
MOST = 1000
MOST_PREFERENCES = 50
MOST_CONSIDERED = 10_000
LONGEST_LEASE = 31_536_000
# With more consumers than this, a request counts as one that may take long; with fewer
# if they are to be together, since all are tried in one place after another.
HEAVY = 100
HEAVY_TOGETHER = 10

QUERY_TEXT = {**TEXT, "maxLength": query_string.LONGEST}
COUNT = {"type": "integer", "minimum": 1}
SECONDS = {**COUNT, "maximum": LONGEST_LEASE}
UUIDS = {"type": "array", "items": UUID, "minItems": 1, "maxItems": MOST}
DOMAINS = {"anyOf": [{"const": "host"}, closed_object(aggregates=UUIDS)]}
SPREAD = extend(
    closed_object(per=DOMAINS, at_most=COUNT),
    properties={"with": {"type": "array", "items": UUID, "maxItems": MOST}},
)
WEIGHT = {"type": "number", "minimum": -1000, "maximum": 1000, "not": {"const": 0}}
PREFERENCE = {
    **some_of(
        "weight",
        weight=WEIGHT,
        trait=EXTERNAL_ID,
        aggregate=UUID,
        host=UUID,
        free=EXTERNAL_ID,
    ),
    # The weight, and exactly one of the others.
    "minProperties": 2,
    "maxProperties": 2,
}
BODY = Schema(
    extend(
        closed_object(query=QUERY_TEXT, consumers=UUIDS, **OWNER, **CONSUMER_TYPE),
        properties={
            "at_least": COUNT,
            "spread": SPREAD,
            "together": DOMAINS,
            "prefer": {**listed(PREFERENCE), "maxItems": MOST_PREFERENCES},
            "consider": {**COUNT, "maximum": MOST_CONSIDERED},
            "lease_seconds": SECONDS,
            "dry_run": BOOLEAN,
        },
    )
)


def is_heavy(query: object, body: Json) -> bool:
    """Return whether a request may take long."""
    most = HEAVY_TOGETHER if "together" in body else HEAVY
    return len(body["consumers"]) > most


QUERY = own_parameter.in_body(query.CANDIDATES.at)


def parse(body: Json, candidates: Candidates) -> Order:
    """Return the parsed request.

    :raises BadRequest: the query is wrong, or members contradict each other
    """
    consumers = tuple(str(uuid.UUID(each)) for each in body["consumers"])
    if len(set(consumers)) < len(consumers):
        raise errors.BadRequest("A consumer is listed twice.")
    at_least = body.get("at_least", len(consumers))
    if at_least > len(consumers):
        count = len(consumers)
        there = "is 1 consumer" if count == 1 else f"are {count} consumers"
        raise errors.BadRequest(f"at_least is {at_least}, but there {there}.")
    return Order(
        _parse_wish(body, candidates),
        consumers,
        body["project_id"],
        body["user_id"],
        body["consumer_type"],
        at_least,
        body.get("lease_seconds"),
        body.get("dry_run", False),
    )


def _parse_wish(body: Json, candidates: Candidates) -> Wish:
    question = query_string.read_text(body["query"], candidates)
    if question.limit is not None:
        raise errors.BadRequest("The query for placements must not have a limit.")
    spread = _parse_spread(body["spread"]) if "spread" in body else None
    together = _parse_domains(body["together"]) if "together" in body else None
    if spread and together:
        per = spread.domains.aggregates is None
        if per == (together.aggregates is None):
            raise errors.BadRequest(
                "Consumers cannot be together in, and spread over, the same kind of "
                "domain."
            )
    return Wish(
        question.request,
        spread,
        together,
        tuple(map(_parse_preference, body.get("prefer", ()))),
        body.get("consider", 500),
    )


def _parse_spread(document: Json) -> Spread:
    beside = (str(uuid.UUID(each)) for each in document.get("with", ()))
    domains = _parse_domains(document["per"])
    return Spread(domains, document["at_most"], tuple(dict.fromkeys(beside)))


def _parse_domains(document: Json) -> Domains:
    if document == "host":
        return Domains()
    return Domains(tuple(dict.fromkeys(document["aggregates"])))


def _parse_preference(document: Json) -> Preference:
    [(text, name)] = [each for each in document.items() if each[0] != "weight"]
    quality = Quality(text)
    if quality is Quality.HOST:
        name = str(uuid.UUID(name))
    return Preference(quality, name, document["weight"])


def _render_amounts(placed: Placement) -> Json:
    return {
        uuid: {"resources": resources} for uuid, resources in placed.amounts.items()
    }


PLACED = record(
    consumer=TEXT,
    host=TEXT_OR_NULL,
    name=TEXT_OR_NULL,
    existed=BOOLEAN,
    allocations=Item(keyed(closed_object(resources=keyed(INTEGER))), _render_amounts),
    consumer_generation=Item({"type": ["integer", "null"]}, "generation"),
    expires_at=Item(
        TEXT_OR_NULL, lambda placed: placed.expires_at and as_text(placed.expires_at)
    ),
    score=Item({"type": ["number", "null"]}, optional="mappings"),
    mappings=Item(keyed(listed(TEXT)), optional=True),
)
# The result of a request.
render = record(
    placements=[PLACED],
    unplaced=listed(TEXT),
    considered=INTEGER,
    exact=BOOLEAN,
    dry_run=BOOLEAN,
)

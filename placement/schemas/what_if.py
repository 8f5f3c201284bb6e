"""Questions about a changed cloud on the wire."""

import dataclasses
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from placement.microversion import MAXIMUM
from placement.questions.candidates import CandidateQuery, Candidates
from placement.questions.capacity import Capacity, CapacityQuery
from placement.questions.explanation.report import ExplanationQuery, Report
from placement.questions.what_if import CloudChange, Difference, World
from placement.schemas import (
    allocation_candidate,
    capacity,
    explanation,
    inventory,
    own_parameter,
    query,
)
from placement.schemas.resource_class import RESOURCE_CLASS_PATTERN
from placement_foundation.http import query_string
from placement_foundation.http.query_string import Pairs
from placement_foundation.http.schema import (
    UUID,
    Described,
    Json,
    Schema,
    View,
    described,
    some_of,
)
from placement_foundation.http.version import ByVersion

Question: TypeAlias = CandidateQuery | ExplanationQuery | CapacityQuery
# Parses the query of a question.
Parser: TypeAlias = Callable[[Pairs], Any]

PARSERS: Mapping[str, ByVersion[Parser]] = {
    "candidates": query.CANDIDATES,
    "explanation": explanation.QUERY,
    "capacity": capacity.QUERY,
}
RENDERERS: Mapping[type, Described[Any]] = {
    Candidates: allocation_candidate.render,
    Report: explanation.render,
    Capacity: capacity.render,
}

# The most changes that one question may make.
MOST = 1000

UUIDS = {"type": "array", "items": UUID, "maxItems": MOST}
NAMES = {"type": "array", "items": {"type": "string", "maxLength": 255}}
RECORD = {**some_of(**inventory.AMOUNTS), "type": ["object", "null"]}


def _difference(items: Mapping[str, Json]) -> Json:
    return some_of(add=items, remove=items)


PROVIDER = some_of(
    inventories={
        "type": "object",
        "patternProperties": {RESOURCE_CLASS_PATTERN: RECORD},
        "additionalProperties": False,
    },
    traits=_difference(NAMES),
    aggregates=_difference(UUIDS),
)
BODY = Schema(
    some_of(
        "query",
        "ask",
        query={"type": "string", "maxLength": query_string.LONGEST},
        ask={"type": "string", "enum": list(PARSERS)},
        ignore_consumers=UUIDS,
        without_hosts=UUIDS,
        providers={
            "type": "object",
            "additionalProperties": PROVIDER,
            "maxProperties": MOST,
        },
    )
)


QUERIES = own_parameter.in_body(
    lambda version: {ask: each.at(version) for ask, each in PARSERS.items()}
)


def parse(body: Json, parsers: Mapping[str, Parser]) -> tuple[Question, World]:
    """Return the question in a body, and the changes to the cloud.

    :raises BadRequest: the query is wrong
    """
    question: Question = query_string.read_text(body["query"], parsers[body["ask"]])
    world = World(
        _parse_uuids(body.get("ignore_consumers", ())),
        _parse_uuids(body.get("without_hosts", ())),
        {
            provider_uuid: _parse_change(change)
            for provider_uuid, change in body.get("providers", {}).items()
        },
    )
    return question, world


def _parse_uuids(texts: Iterable[str]) -> frozenset[str]:
    """Return UUIDs in the usual spelling."""
    return frozenset(str(uuid.UUID(each)) for each in texts)


def _parse_change(change: Json) -> CloudChange:
    return CloudChange(
        {
            name: fields and inventory.parse_fields(fields)
            for name, fields in change.get("inventories", {}).items()
        },
        _parse_difference(change.get("traits", {})),
        _parse_difference(change.get("aggregates", {})),
    )


def _parse_difference(difference: Json) -> Difference:
    return Difference(
        frozenset(difference.get("add", ())), frozenset(difference.get("remove", ()))
    )


@described({"anyOf": [each.describe(MAXIMUM) for each in RENDERERS.values()]})
def render(value: Candidates | Report | Capacity, view: View) -> Json:
    """Render an answer in the newest shape of the operation that gives it."""
    newest = dataclasses.replace(view, version=MAXIMUM)
    return RENDERERS[type(value)](value, newest)

"""Questions about a changed cloud on the wire."""

import dataclasses
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from placement.microversion import MAXIMUM
from placement.questions.candidates import Candidates
from placement.questions.capacity import Capacity
from placement.questions.explanation.explanation import Explanation
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
    Json,
    Schema,
    View,
    described,
    some_of,
)
from placement_foundation.http.version import ByVersion, Version

# Parses the query of a question.
Parser: TypeAlias = Callable[[Pairs], Any]

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
        ask={
            "type": "string",
            "enum": ["candidates", "explanation", "capacity"],
        },
        ignore_consumers=UUIDS,
        without_hosts=UUIDS,
        providers={
            "type": "object",
            "additionalProperties": PROVIDER,
            "maxProperties": MOST,
        },
    )
)

PARSERS: Mapping[str, ByVersion[Parser]] = {
    "candidates": query.CANDIDATES,
    "explanation": explanation.QUERY,
    "capacity": capacity.QUERY,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """A question, and the changes to the cloud that it is about."""

    ask: str
    question: Any
    world: World


QUERIES = own_parameter.in_body(
    lambda version: {ask: each.at(version) for ask, each in PARSERS.items()}
)


def parse(body: Json, parsers: Mapping[str, Parser]) -> Asked:
    """Return the question in a body, and the changes to the cloud.

    :raises BadRequest: the query is wrong
    """
    question = query_string.read_text(body["query"], parsers[body["ask"]])
    world = World(
        _parse_uuids(body.get("ignore_consumers", ())),
        _parse_uuids(body.get("without_hosts", ())),
        {
            provider_uuid: _parse_change(change)
            for provider_uuid, change in body.get("providers", {}).items()
        },
    )
    return Asked(body["ask"], question, world)


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


def _describe(version: Version) -> Json:
    renderers = (allocation_candidate.render, explanation.render, capacity.render)
    return {"anyOf": [renderer.describe(MAXIMUM) for renderer in renderers]}


@described(_describe)
def render(value: Candidates | Explanation | Capacity, view: View) -> Json:
    """Render an answer in the newest shape of the operation that gives it."""
    newest = dataclasses.replace(view, version=MAXIMUM)
    match value:
        case Candidates():
            return allocation_candidate.render(value, newest)
        case Explanation():
            return explanation.render(value, newest)
    return capacity.render(value, newest)

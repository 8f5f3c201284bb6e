"""Aggregates of a provider on the wire."""

import dataclasses
from collections.abc import Sequence

from placement_foundation.http.schema import (
    INTEGER,
    TEXT,
    UUID,
    Json,
    Schema,
    View,
    closed_object,
    described,
    listed,
)
from placement_foundation.http.version import ByVersion, Version

AGGREGATES_V1_1 = {"type": "array", "items": UUID, "uniqueItems": True}
AGGREGATES_V1_19 = {
    "type": "object",
    "properties": {
        "aggregates": AGGREGATES_V1_1,
        "resource_provider_generation": {"type": "integer"},
    },
    "required": ["aggregates", "resource_provider_generation"],
    "additionalProperties": False,
}

PUT_AGGREGATES = ByVersion(
    {(1, 1): Schema(AGGREGATES_V1_1), (1, 19): Schema(AGGREGATES_V1_19)}
)


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderAggregates:
    """The aggregates of a provider, and its generation.

    Before 1.19, a request carries no generation, and none is checked.
    """

    aggregates: Sequence[str]
    generation: int | None


def parse_aggregates(body: Json) -> ProviderAggregates:
    """Return the aggregates in a body of either form."""
    if isinstance(body, list):
        return ProviderAggregates(body, None)
    return ProviderAggregates(body["aggregates"], body["resource_provider_generation"])


def _describe_v1_1(version: Version) -> Json:
    # Replies spell them as the caller did.
    return closed_object(aggregates=listed(TEXT))


@described(_describe_v1_1)
def _render_v1_1(value: ProviderAggregates, view: View) -> Json:
    return {"aggregates": list(value.aggregates)}


def _describe_v1_19(version: Version) -> Json:
    return closed_object(aggregates=listed(TEXT), resource_provider_generation=INTEGER)


@described(_describe_v1_19)
def _render_v1_19(value: ProviderAggregates, view: View) -> Json:
    return {
        "aggregates": list(value.aggregates),
        "resource_provider_generation": value.generation,
    }


RENDER_AGGREGATES = ByVersion({(1, 1): _render_v1_1, (1, 19): _render_v1_19})

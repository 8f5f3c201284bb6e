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
from placement_foundation.http.version import ByVersion

AGGREGATES_V1_1 = {"type": "array", "items": UUID, "uniqueItems": True}
AGGREGATES_V1_19 = closed_object(
    aggregates=AGGREGATES_V1_1, resource_provider_generation={"type": "integer"}
)

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


# Replies spell them as the caller did.
@described(closed_object(aggregates=listed(TEXT)))
def _render_v1_1(value: ProviderAggregates, view: View) -> Json:
    return {"aggregates": list(value.aggregates)}


@described(closed_object(aggregates=listed(TEXT), resource_provider_generation=INTEGER))
def _render_v1_19(value: ProviderAggregates, view: View) -> Json:
    return {
        "aggregates": list(value.aggregates),
        "resource_provider_generation": value.generation,
    }


RENDER_AGGREGATES = ByVersion({(1, 1): _render_v1_1, (1, 19): _render_v1_19})

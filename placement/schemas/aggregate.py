"""Aggregates of a provider on the wire."""

from collections.abc import Sequence

from placement.model.resource_provider import Belongings
from placement.schemas.record import GENERATION, Item, record
from placement_foundation.http.schema import (
    TEXT,
    UUID,
    Json,
    Schema,
    closed_object,
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


def parse_aggregates(body: Json) -> Belongings[Sequence[str]]:
    """Return the aggregates in a body of either form."""
    if isinstance(body, list):
        return Belongings(body, None)
    return Belongings(body["aggregates"], body["resource_provider_generation"])


# Replies spell them as the caller did.
render_aggregates = record(
    aggregates=Item(listed(TEXT), "parts"),
    resource_provider_generation=GENERATION._replace(since=(1, 19)),
)

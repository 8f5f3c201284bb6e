"""Traits of a node on the wire."""

from collections.abc import Sequence

from placement_foundation.http.schema import Json, View
from placement_nodes.schemas.document import Body

REPLACEMENT = Body(
    {
        "type": "object",
        "properties": {"traits": {"type": "array", "items": {"type": "string"}}},
        "required": ["traits"],
        "additionalProperties": False,
    }
)
# Some clients send an empty document instead of no body.
NOTHING = Body({"type": ["object", "null"], "maxProperties": 0})


def render_traits(traits: Sequence[str], view: View) -> Json:
    """Render a list of traits."""
    return {"traits": list(traits)}

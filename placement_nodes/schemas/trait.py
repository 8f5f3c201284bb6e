"""Traits of a node on the wire."""

from collections.abc import Sequence

from placement_foundation.http.schema import TEXT, Json, View, closed_object, listed
from placement_nodes.schemas.document import Body

REPLACEMENT = Body(closed_object(traits=listed(TEXT)))
# Some clients send an empty document instead of no body.
NOTHING = Body({"type": ["object", "null"], "maxProperties": 0})


def render_traits(traits: Sequence[str], view: View) -> Json:
    """Render a list of traits."""
    return {"traits": list(traits)}

"""JSON bodies: how what is wrong with them is told, and how large they may be."""

import json
from collections.abc import Mapping

from placement_consumers.nodes import errors
from placement_foundation.schema import Json, Schema

COMPLAINT = "Schema error for body: "
# What a node may take, as JSON. Larger ones would not get through to some servers.
MOST_CHARACTERS = 1 << 20
DEEPEST = 50


class Body(Schema):
    """A JSON Schema whose complaint is one sentence, for a line of a terminal."""

    def check(self, document: Json, complaint: str) -> None:
        """Check a document.

        :raises BadRequest: the document breaks the schema, where and how
        """
        fault = self.fault(document)
        if fault:
            where = "/".join(map(str, fault.absolute_path))
            place = f" (at {where})" if where else ""
            raise errors.BadRequest(f"{COMPLAINT}{fault.message}{place}")


def check_size(document: Mapping[str, Json]) -> None:
    """Check that a node can be stored, and read again.

    :raises BadRequest: it is too large, or too deep
    """
    layer: list[Json] = [document]
    for _ in range(DEEPEST):
        layer = [inner for outer in layer for inner in _members(outer)]
        if not layer:
            break
    else:
        raise errors.BadRequest(
            f"The node is too deep: lists and objects nest {DEEPEST} times at most."
        )
    size = len(json.dumps(document))
    if size > MOST_CHARACTERS:
        raise errors.BadRequest(
            f"The node is too large: {size} characters of JSON, and "
            f"{MOST_CHARACTERS} at most."
        )


def _members(value: Json) -> list[Json]:
    members = value.values() if isinstance(value, dict) else value
    return [each for each in members if isinstance(each, dict | list)]

"""JSON bodies: their error messages, and their size limits."""

import json
from collections.abc import Mapping

from placement_foundation import errors
from placement_foundation.http.schema import Json, Schema

COMPLAINT = "Schema error for body: "
# The size limit of a node, as JSON. Larger nodes would not get through to some servers.
MOST_CHARACTERS = 1 << 20
DEEPEST = 50


class Body(Schema):
    """A JSON Schema whose error message is one sentence, on one line of a terminal."""

    def check(self, document: Json, complaint: str) -> None:
        """Check a document.

        :raises BadRequest: the document violates the schema; the message says where and
            how
        """
        fault = self.fault(document)
        if fault:
            where = "/".join(map(str, fault.absolute_path))
            place = f" (at {where})" if where else ""
            raise errors.BadRequest(f"{COMPLAINT}{fault.message}{place}")


def check_size(document: Mapping[str, Json]) -> None:
    """Check that a node can be stored, and read again.

    :raises BadRequest: it is too large, or nested too deeply
    """
    layer: list[Json] = [document]
    for _ in range(DEEPEST):
        layer = [inner for outer in layer for inner in _members(outer)]
        if not layer:
            break
    else:
        raise errors.BadRequest(
            f"The node is too deep: {DEEPEST} levels of lists and objects at most."
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

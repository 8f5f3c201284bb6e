"""JSON patches of a node: RFC 6902, limited to fields that may be changed."""

import copy
from collections.abc import Sequence
from typing import Any

import jsonpatch
import jsonpointer

from placement_foundation import errors
from placement_foundation.http.schema import Json, listed
from placement_foundation.http.version import ByVersion
from placement_nodes import version
from placement_nodes.schemas import field
from placement_nodes.schemas.document import Body, check_size

MOST_OPERATIONS = 1000
POINTER = {"type": "string", "pattern": "^/"}
OPERATION = {
    "type": "object",
    "properties": {
        "op": {"enum": ["add", "remove", "replace", "move", "copy", "test"]},
        "path": POINTER,
        "from": POINTER,
    },
    "required": ["op", "path"],
}
OPERATIONS = {**listed(OPERATION), "maxItems": MOST_OPERATIONS}
# Why some fields cannot be patched, if there is more to say.
ELSEWHERE = {
    "traits": "Its traits are changed at /v1/nodes/{node}/traits.",
    **dict.fromkeys(
        field.STATE_FIELDS, "States are changed at /v1/nodes/{node}/states."
    ),
    "maintenance_reason": "It is set at /v1/nodes/{node}/maintenance.",
}


class Patch(Body):
    """The schema of a patch that may change certain fields and no others."""

    def __init__(self, changeable: Sequence[str]) -> None:
        super().__init__(OPERATIONS)
        self._changeable = changeable

    def check(self, document: Json, complaint: str) -> None:
        """Check a patch.

        :raises BadRequest: it is malformed, or would change fields that cannot be
            changed
        """
        super().check(document, complaint)
        for operation in document:
            for member in ("path", "from"):
                if member in operation:
                    self._check_field(operation[member])

    def _check_field(self, pointer: str) -> None:
        name = pointer.split("/")[1].replace("~1", "/").replace("~0", "~")
        if name not in self._changeable:
            reason = ELSEWHERE.get(name, "It cannot be changed, or does not exist.")
            raise errors.BadRequest(f"Cannot patch /{name}. {reason}")


BODY = ByVersion(
    {
        version.MINIMUM: Patch(
            [name for name in field.CHANGEABLE if name not in field.SINCE]
        ),
        version.RESOURCE_CLASS: Patch(field.CHANGEABLE),
    }
)


def apply(document: dict[str, Json], operations: Sequence[dict[str, Any]]) -> Json:
    """Return a document with a patch applied.

    :raises BadRequest: the patch does not apply, or copies too much
    """
    # One copy, not one for each operation: other requests wait for the lock.
    document = copy.deepcopy(document)
    for operation in operations:
        if operation["op"] == "copy":
            # Doubling a value again and again could fill any memory.
            check_size(document)
        try:
            jsonpatch.JsonPatch([operation]).apply(document, in_place=True)
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as exc:
            raise errors.BadRequest(
                f"Couldn't apply patch {operation!r}. Reason: {exc}"
            ) from exc
    return document

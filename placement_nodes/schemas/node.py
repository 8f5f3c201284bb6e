"""Nodes on the wire."""

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from oslo_utils import uuidutils

from placement_foundation import errors
from placement_foundation.http.schema import (
    TEXT,
    TEXT_OR_NULL,
    UUID,
    Json,
    View,
    extend,
    some_of,
)
from placement_foundation.http.version import ByVersion
from placement_nodes import version
from placement_nodes.objects.node import Node, canonical_uuid
from placement_nodes.schemas import field
from placement_nodes.schemas.document import Body, check_size
from placement_nodes.schemas.query import Listing

NAME = re.compile("[a-zA-Z0-9._~-]+")
# Such a name would be hidden by the path of the list with details.
RESERVED_NAMES = {"detail"}
LONGEST_NAME = 255
LONGEST_CLASS = 80
UUID_FIELDS = ("instance_uuid", "chassis_uuid")

NULLABLE_OBJECT = {"type": ["object", "null"]}
NULLABLE_UUID = {"anyOf": [UUID, {"type": "null"}]}
INTERFACE = {"type": ["string", "null"], "minLength": 1, "maxLength": 255}
VALUES = some_of(
    "driver",
    name=TEXT_OR_NULL,
    driver=TEXT,
    **dict.fromkeys(field.OBJECT_FIELDS, NULLABLE_OBJECT),
    **dict.fromkeys(UUID_FIELDS, NULLABLE_UUID),
    maintenance={"type": "boolean"},
    **dict.fromkeys(field.INTERFACE_FIELDS, INTERFACE),
)
RESOURCE_CLASS = {**TEXT_OR_NULL, "maxLength": LONGEST_CLASS}
CLASSIFIED = extend(VALUES, properties={"resource_class": RESOURCE_CLASS})
# The schema of any node, created or patched.
WHOLE = Body(CLASSIFIED)
POST = ByVersion(
    {
        version.MINIMUM: Body(extend(VALUES, properties={"uuid": UUID})),
        version.RESOURCE_CLASS: Body(extend(CLASSIFIED, properties={"uuid": UUID})),
    }
)


# A page of a list: the query, the nodes, and whether more follow.
NodeList = tuple[Listing, Sequence[Node], bool]


def path_of(ident: str, *below: str) -> str:
    """Return the path of a node, or of a part of it."""
    return "".join(
        ["/v1/nodes", *(f"/{quote(each, safe='')}" for each in (ident, *below))]
    )


def check(document: Mapping[str, Json]) -> None:
    """Check that a document, whatever its origin, describes a valid node.

    :raises BadRequest: it does not
    """
    check_size(document)
    WHOLE.check(document, "")


def parse_columns(document: Mapping[str, Json], doing: str) -> dict[str, Any]:
    """Return the values in a valid document of a node, keyed by column.

    :param doing: the operation, for error messages: ``create``
    :raises BadRequest: the name is not valid for a node
    """
    _check_name(document.get("name"), doing)
    return {
        **{name: document.get(name) for name in ("name", "driver", "resource_class")},
        **{name: document.get(name) or {} for name in field.OBJECT_FIELDS},
        **{name: _uuid(document.get(name)) for name in UUID_FIELDS},
        "maintenance": document.get("maintenance", False),
        "interfaces": {
            kind: document[name]
            for name, kind in field.INTERFACE_FIELDS.items()
            if document.get(name) is not None
        },
    }


def _uuid(text: str | None) -> str | None:
    return text and canonical_uuid(text)


def _check_name(name: str | None, doing: str) -> None:
    if name is None:
        return
    if (
        not NAME.fullmatch(name)
        or len(name) > LONGEST_NAME
        or name in RESERVED_NAMES
        or uuidutils.is_uuid_like(name)
    ):
        raise errors.BadRequest(f"Cannot {doing} node with invalid name '{name}'")


def changeable(node: Node) -> dict[str, Json]:
    """Return the document to which a patch is applied; unset fields are null."""
    return {
        name: (
            node.interfaces.get(field.INTERFACE_FIELDS[name])
            if name in field.INTERFACE_FIELDS
            else getattr(node, name)
        )
        for name in field.CHANGEABLE
    }


def render_node(node: Node, view: View) -> Json:
    """Render a whole node."""
    return _render(node, field.ALL_FIELDS, view)


def render_shown(value: tuple[Node, Sequence[str] | None], view: View) -> Json:
    """Render the requested fields of a node; None means all."""
    node, fields = value
    return _render(node, fields or field.ALL_FIELDS, view)


def render_list(found: NodeList, view: View) -> Json:
    """Render the requested fields of the nodes of a list."""
    return _render_list(found, found[0].fields or field.SHORT_FIELDS, "", view)


def render_whole_list(found: NodeList, view: View) -> Json:
    """Render a list of whole nodes."""
    return _render_list(found, field.ALL_FIELDS, "/detail", view)


def render_states(node: Node, view: View) -> Json:
    """Render the states of a node."""
    return {name: _value(node, name, view) for name in field.STATE_FIELDS}


def _render_list(
    found: NodeList, fields: Sequence[str], below: str, view: View
) -> Json:
    listing, nodes, has_more = found
    document: dict[str, Json] = {
        "nodes": [_render(node, fields, view) for node in nodes]
    }
    if has_more:
        query = urlencode(listing.after(nodes[-1].uuid), safe=",")
        document["next"] = f"{view.base}/v1/nodes{below}?{query}"
    return document


def _render(node: Node, fields: Sequence[str], view: View) -> Json:
    shown = [name for name in fields if field.is_known(name, view.version)]
    return {name: _value(node, name, view) for name in shown}


def _value(node: Node, name: str, view: View) -> Json:
    if name == "links":
        return links(view, f"nodes/{node.uuid}")
    if name in field.INTERFACE_FIELDS:
        kind = field.INTERFACE_FIELDS[name]
        return node.interfaces.get(kind, field.INTERFACES[kind])
    value = getattr(node, name)
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=datetime.UTC).isoformat(timespec="microseconds")
    return value


def links(view: View, path: str) -> Json:
    """Return the links to a resource, which clients may follow or remember."""
    return [
        {"href": f"{view.base}/v1/{path}", "rel": "self"},
        {"href": f"{view.base}/{path}", "rel": "bookmark"},
    ]

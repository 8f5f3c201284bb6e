"""Hosts on the wire: their capabilities are members of the same object."""

from collections.abc import Sequence
from typing import Any

from placement_foundation import errors
from placement_foundation.http import query_string
from placement_foundation.http.query_string import Pairs
from placement_foundation.http.schema import Json, Schema, View, closed_object, some_of
from placement_reservations.schemas import moment
from placement_reservations.store.host import RESERVED, Host, Property

VALUE_TYPES = ["string", "number", "boolean"]
VALUE = {"type": VALUE_TYPES, "maxLength": 4096}
CAPABILITY = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": r"^[^\s/]+$",
}
# "blazar_" and the host name make the name of a resource provider.
HOST_NAME = {"type": "string", "minLength": 1, "maxLength": 193}

POST_HOST = Schema(
    {
        "type": "object",
        "properties": {"name": HOST_NAME},
        "required": ["name"],
        "propertyNames": CAPABILITY,
        "additionalProperties": VALUE,
    }
)
PUT_HOST = Schema(
    {
        "type": "object",
        "minProperties": 1,
        "propertyNames": CAPABILITY,
        "additionalProperties": {**VALUE, "type": [*VALUE_TYPES, "null"]},
    }
)
PATCH_PROPERTY = Schema(closed_object(private={"type": "boolean"}))
FLAG = {"enum": ["True", "False", "true", "false", "1", "0"]}


@query_string.parser(some_of(detail=FLAG, all=FLAG))
def parse_properties_query(pairs: Pairs) -> dict[str, bool]:
    """Return the flags that are set.

    :raises BadRequest: a parameter is unknown, or not a flag
    """
    return {name: value.lower() in ("true", "1") for name, value in pairs}


def parse_capabilities(body: Json) -> dict[str, str | None]:
    """Return the capabilities in a body; None removes one.

    :raises BadRequest: the name of a capability is reserved
    """
    said = {name: value for name, value in body.items() if name != "name"}
    for name in said:
        if name in RESERVED:
            raise errors.BadRequest(f"{name!r} of a host cannot be set.")
    return {name: None if value is None else str(value) for name, value in said.items()}


def render_host(host: Host, view: View) -> Json:
    """Render one host."""
    return {"host": _render(host)}


def render_hosts(hosts: Sequence[Host], view: View) -> Json:
    """Render hosts."""
    return {"hosts": [_render(host) for host in hosts]}


def _render(host: Host) -> dict[str, Any]:
    return {
        **host.capabilities,
        **host.columns,
        "id": str(host.id),
        "status": None,
        "reservable": host.reservable,
        "trust_id": None,
        **moment.render_stamps(host),
    }


def render_property(value: Property, view: View) -> Json:
    """Render a capability."""
    return {"resource_property": _render_property(value)}


def render_properties(value: tuple[Sequence[Property], bool], view: View) -> Json:
    """Render capabilities, with details if requested."""
    found, detail = value
    return {
        "resource_properties": [
            _render_property(each) if detail else {"property": each.name}
            for each in found
        ]
    }


def _render_property(value: Property) -> dict[str, Any]:
    return {
        "property": value.name,
        "private": value.private,
        "values": list(value.values),
    }

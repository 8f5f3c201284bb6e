"""Resource classes on the wire."""

from collections.abc import Iterable

from placement.model.resource_class import ResourceClass
from placement_foundation.http.schema import (
    TEXT,
    Json,
    Schema,
    View,
    closed_object,
    described,
    listed,
)

NAME = {"type": "string", "pattern": "^CUSTOM_[A-Z0-9_]+$", "maxLength": 255}

RESOURCE_CLASS_PATTERN = "^[A-Z0-9_]+$"

RESOURCE_CLASS = Schema(closed_object(name=NAME))


def check_name(name: str) -> None:
    """Check a name from a path in the same way as one from a body.

    :raises BadRequest: it is not a valid name for a custom class
    """
    RESOURCE_CLASS.check({"name": name}, "JSON does not validate: ")


def path(name: str) -> str:
    """Return the path of a class."""
    return f"/resource_classes/{name}"


SHOWN = closed_object(
    name=TEXT, links=listed(closed_object(rel={"const": "self"}, href=TEXT))
)


@described(SHOWN)
def render_class(known: ResourceClass, view: View) -> Json:
    """Render a resource class."""
    links = [{"rel": "self", "href": view.href(path(known.name))}]
    return {"name": known.name, "links": links}


@described(closed_object(resource_classes=listed(SHOWN)))
def render_classes(known: Iterable[ResourceClass], view: View) -> Json:
    """Render all resource classes."""
    return {"resource_classes": [render_class(each, view) for each in known]}

"""The documents about the service itself: its versions, its health and its drivers."""

import socket
from collections.abc import Sequence

from placement_foundation.http.schema import Json, View
from placement_nodes import version
from placement_nodes.schemas.node import links


def render_root(value: None, view: View) -> Json:
    """Render the versions of the API. There is only one, with its microversions."""
    return {
        "name": "Node traits",
        "description": "What bare metal nodes there are, and what they are like.",
        "default_version": _version(view),
        "versions": [_version(view)],
    }


def render_v1(value: None, view: View) -> Json:
    """Render the resources of version 1 of the API."""
    return {
        "id": "v1",
        "links": [_self(view)],
        "media_types": {
            "base": "application/json",
            "type": "application/vnd.openstack.ironic.v1+json",
        },
        "nodes": links(view, "nodes/"),
        "drivers": links(view, "drivers/"),
        "version": _version(view),
    }


def render_health(value: None, view: View) -> Json:
    """Render that the service is healthy."""
    return {"status": "ok"}


def render_drivers(drivers: Sequence[str], view: View) -> Json:
    """Render the drivers that nodes may have; this machine serves all of them."""
    host = socket.gethostname()
    return {
        "drivers": [
            {
                "name": name,
                "hosts": [host],
                "links": links(view, f"drivers/{name}"),
                "type": "dynamic",
            }
            for name in drivers
        ]
    }


def _version(view: View) -> Json:
    return {
        "id": "v1",
        "links": [_self(view)],
        "status": "CURRENT",
        "min_version": str(version.MINIMUM),
        "version": str(version.MAXIMUM),
    }


def _self(view: View) -> Json:
    return {"href": f"{view.base}/v1/", "rel": "self"}

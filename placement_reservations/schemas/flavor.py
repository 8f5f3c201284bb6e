"""Flavors on the wire, as Nova shows them."""

from collections.abc import Sequence
from typing import Any

from placement_foundation.http.schema import Json, View
from placement_reservations.store.flavor import Flavor


def render_flavor(flavor: Flavor, view: View) -> Json:
    """Render one flavor."""
    return {"flavor": _render(flavor, view)}


def render_flavors(flavors: Sequence[Flavor], view: View) -> Json:
    """Render flavors."""
    return {"flavors": [_render(flavor, view) for flavor in flavors]}


def _render(flavor: Flavor, view: View) -> dict[str, Any]:
    return {
        "id": flavor.id,
        "name": flavor.name,
        "description": None,
        "vcpus": flavor.size.vcpus,
        "ram": flavor.size.memory_mb,
        "disk": flavor.size.disk_gb,
        "OS-FLV-EXT-DATA:ephemeral": 0,
        "swap": 0,
        "rxtx_factor": 1.0,
        "OS-FLV-DISABLED:disabled": False,
        "os-flavor-access:is_public": False,
        "extra_specs": flavor.extra_specs,
        "links": [{"rel": "self", "href": f"{view.base}/v1/flavors/{flavor.id}"}],
    }

"""Drivers on the wire."""

import socket
from collections.abc import Sequence

from placement_foundation.http.schema import Json, View
from placement_nodes.schemas.node import links


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

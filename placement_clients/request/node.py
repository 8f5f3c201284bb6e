"""The patch that gives a bare metal node the traits of its instance."""

from placement_clients.record import Json
from placement_clients.request.flavor import Flavor
from placement_clients.request.image import Image
from placement_clients.request.preflight import flavor_traits


def patch(flavor: Flavor, image: Image | None = None) -> list[Json]:
    """Return the JSON patch for the node, which is empty if there are no traits."""
    required = (
        flavor_traits(flavor, "required") | (image.required if image else {}).keys()
    )
    if not required:
        return []
    return [{"op": "add", "path": "/instance_info/traits", "value": sorted(required)}]

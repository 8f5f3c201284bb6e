"""Images: the traits that they require of hosts."""

import dataclasses
from collections.abc import Mapping

from placement_clients.record import Json
from placement_clients.request.document import parse_members, parse_properties

TRAIT = "trait:"


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """The properties of an image, and its id if known."""

    properties: Mapping[str, str]
    id: str | None = None

    @property
    def required(self) -> dict[str, str]:
        """The required traits, each with the property that requires it."""
        return {
            key.removeprefix(TRAIT): key
            for key, value in sorted(self.properties.items())
            if key.startswith(TRAIT) and value == "required"
        }

    def is_same(self, other: "Image") -> bool:
        """Return whether this is the same image, by id if both have one."""
        if self.id and other.id:
            return self.id == other.id
        return self.properties == other.properties


def parse(document: Json) -> Image:
    """Return an image from a map of properties, or from the output of ``openstack``.

    That is ``openstack image show``, with custom properties below ``properties``, or
    ``openstack volume show``, with the properties of the image from which the volume
    was made.

    :raises BadInput: it is neither
    """
    members = parse_members(document, "the image")
    if "volume_image_metadata" in members:
        name = "volume_image_metadata"
        properties = parse_properties(members[name], f"image {name}")
        return Image(properties, properties.get("image_id"))
    identity = members.get("id")
    ident = identity if isinstance(identity, str) else None
    if "properties" in members:
        return Image(parse_properties(members["properties"], "image properties"), ident)
    return Image(parse_properties(dict(members), "the image"), ident)

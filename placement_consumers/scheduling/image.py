"""Images: what a server that runs one needs of its host."""

import dataclasses
from collections.abc import Mapping

from placement_consumers.client import Json
from placement_consumers.scheduling.document import parse_members, parse_properties

TRAIT = "trait:"


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """The properties of an image; its id if that is known."""

    properties: Mapping[str, str]
    id: str | None = None

    @property
    def required(self) -> dict[str, str]:
        """The traits that it requires, each with the property that says so."""
        return {
            key.removeprefix(TRAIT): key
            for key, value in sorted(self.properties.items())
            if key.startswith(TRAIT) and value == "required"
        }

    def is_same(self, other: "Image") -> bool:
        """Tell whether this is the other image, by their ids if both have one."""
        if self.id and other.id:
            return self.id == other.id
        return self.properties == other.properties


def parse(document: Json) -> Image:
    """Return an image written as a map of properties, or as ``openstack`` prints it.

    That is ``openstack image show``, with custom properties below ``properties``, or
    ``openstack volume show`` with those of the image that the volume was made from.

    :raises BadInput: it is neither
    """
    members = parse_members(document, "the image")
    if "volume_image_metadata" in members:
        name = "volume_image_metadata"
        found = parse_properties(members[name], f"image {name}")
        return Image(found, found.get("image_id"))
    identity = members.get("id")
    known = identity if isinstance(identity, str) else None
    if "properties" in members:
        return Image(parse_properties(members["properties"], "image properties"), known)
    return Image(parse_properties(dict(members), "the image"), known)

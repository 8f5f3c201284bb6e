"""Requests to the reshaper on the wire."""

from placement.model.allocation import Claim
from placement.model.reshape import Shape
from placement.schemas import allocation, inventory
from placement.schemas.allocation import by_uuid
from placement_foundation.http.schema import Json, Schema, closed_object
from placement_foundation.http.version import ByVersion

# As in replacing the inventories of a provider, both members are required.
INVENTORIES = by_uuid(inventory.INVENTORIES, least=1)


def _schema(claim: Json) -> Schema:
    return Schema(closed_object(inventories=INVENTORIES, allocations=by_uuid(claim)))


POST = ByVersion(
    {
        (1, 30): _schema(allocation.V1_28),
        (1, 34): _schema(allocation.V1_34),
        (1, 38): _schema(allocation.V1_38),
    }
)


def parse_shapes(document: Json) -> dict[str, Shape]:
    """Return the new shapes of providers, by UUID, in the order of the document."""
    return {uuid: _parse_shape(each) for uuid, each in document["inventories"].items()}


def parse_claims(document: Json) -> list[Claim]:
    """Return the claims of consumers, in the order of the document."""
    return allocation.parse_claims(document["allocations"])


def _parse_shape(document: Json) -> Shape:
    records = document["inventories"]
    return Shape(
        document["resource_provider_generation"],
        class_names=list(records),
        inventories=inventory.parse_inventories(records),
    )

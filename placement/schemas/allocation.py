"""Allocations on the wire: every shape they have ever had."""

import uuid
from collections.abc import Mapping, Sequence

from oslo_utils import uuidutils

from placement import errors
from placement.model.allocation import Allocation, Claim
from placement.model.consumer import UNKNOWN_TYPE, WantedConsumer
from placement.model.resource_provider import Belongings
from placement.schemas.record import Item, record
from placement.schemas.resource_class import RESOURCE_CLASS_PATTERN
from placement_foundation.http.schema import (
    INTEGER,
    TEXT,
    UUID,
    Json,
    Schema,
    View,
    closed_map,
    closed_object,
    described,
    extend,
    keyed,
)
from placement_foundation.http.version import ByVersion, Version


def parse_consumer_uuid(consumer_uuid: str) -> str:
    """Return the UUID in a path, however it is spelled, in its stored form.

    :raises BadRequest: the string is not a UUID
    """
    if not uuidutils.is_uuid_like(consumer_uuid):
        raise errors.BadRequest(f"Malformed consumer_uuid: {consumer_uuid}")
    return str(uuid.UUID(consumer_uuid))


def by_uuid(value: Json, *, least: int = 0) -> dict[str, Json]:
    """Return the schema of an object that is keyed by UUIDs.

    Any 36 characters that can occur in a UUID pass for one.
    """
    return closed_map("^[0-9a-fA-F-]{36}$", value, least=least)


RESOURCES = closed_map(
    RESOURCE_CLASS_PATTERN, {"type": "integer", "minimum": 1}, least=1
)
EXTERNAL_ID = {"type": "string", "minLength": 1, "maxLength": 255}
OWNER = {"project_id": EXTERNAL_ID, "user_id": EXTERNAL_ID}
CONSUMER_GENERATION = {"consumer_generation": {"type": ["integer", "null"]}}
CONSUMER_TYPE = {
    "consumer_type": {
        "type": "string",
        "pattern": RESOURCE_CLASS_PATTERN,
        "minLength": 1,
        "maxLength": 255,
    }
}
# Which providers serve which request groups. Candidates include this, so clients may
# send it back; it has no meaning here. The pattern is not anchored: keys that are not
# suffixes of groups pass, whatever they hold.
MAPPINGS = {
    "mappings": {
        "type": "object",
        "minProperties": 1,
        "patternProperties": {
            "[a-zA-Z0-9_-]{1,64}": {"type": "array", "minItems": 1, "items": UUID}
        },
    }
}

# Replies include the generation of each provider, so clients may send it back. It is
# ignored.
ENTRY = extend(
    closed_object(resources=RESOURCES), properties={"generation": {"type": "integer"}}
)
LISTED = {
    "type": "array",
    "minItems": 1,
    "items": closed_object(
        resource_provider=closed_object(uuid=UUID), resources=RESOURCES
    ),
}


def _extend(schema: Json, properties: Mapping[str, Json]) -> dict[str, Json]:
    return extend(schema, properties=properties, required=tuple(properties))


# The document for one consumer.
V1_0 = closed_object(allocations=LISTED)
V1_8 = _extend(V1_0, OWNER)
V1_12 = closed_object(allocations=by_uuid(ENTRY, least=1), **OWNER)
V1_13 = closed_object(allocations=by_uuid(ENTRY), **OWNER)
V1_28 = _extend(V1_13, CONSUMER_GENERATION)
V1_34 = extend(V1_28, properties=MAPPINGS)
V1_38 = _extend(V1_34, CONSUMER_TYPE)

SINCE_V1_28 = {(1, 28): V1_28, (1, 34): V1_34, (1, 38): V1_38}
PUTS = {(1, 0): V1_0, (1, 8): V1_8, (1, 12): V1_12, **SINCE_V1_28}
POSTS = {(1, 13): V1_13, **SINCE_V1_28}

PUT = ByVersion({since: Schema(document) for since, document in PUTS.items()})
POST = ByVersion(
    {since: Schema(by_uuid(claim, least=1)) for since, claim in POSTS.items()}
)


def parse_claim(consumer_uuid: str, document: Json) -> Claim:
    """Return the claim of a consumer in a document."""
    consumer = WantedConsumer(
        consumer_uuid,
        document["project_id"],
        document["user_id"],
        type=document.get("consumer_type"),
        guarded="consumer_generation" in document,
        generation=document.get("consumer_generation"),
    )
    return Claim(consumer, _parse_amounts(document["allocations"]))


def parse_claims(document: Json) -> list[Claim]:
    """Return the claims of several consumers, in the order of the document."""
    return [parse_claim(uuid, each) for uuid, each in document.items()]


def _parse_amounts(document: Json) -> dict[str, dict[str, int]]:
    """Return amounts by provider and class, from an object or, before 1.12, a list.

    If a list names a provider twice, the last entry counts.
    """
    if isinstance(document, list):
        return {
            item["resource_provider"]["uuid"]: item["resources"] for item in document
        }
    return {uuid: item["resources"] for uuid, item in document.items()}


# The members about the consumer of allocations.
GENERATION = Item(INTEGER, "consumer.generation", since=(1, 28))
ABOUT = record(
    project_id=Item(TEXT, "consumer.project_id", since=(1, 12)),
    user_id=Item(TEXT, "consumer.user_id", since=(1, 12)),
    consumer_generation=GENERATION,
    consumer_type=Item(
        TEXT, lambda each: each.consumer.type or UNKNOWN_TYPE, since=(1, 38)
    ),
)
OF_CONSUMER = record(
    resources=Item(keyed(INTEGER), "amounts"),
    generation=Item(INTEGER, "provider_generation"),
)
# Here each consumer is one of many.
OF_PROVIDER = record(
    resources=Item(keyed(INTEGER), "amounts"), consumer_generation=GENERATION
)


def _describe_consumer(version: Version) -> Json:
    return extend(
        closed_object(allocations=keyed(OF_CONSUMER.describe(version))),
        properties=ABOUT.describe(version)["properties"],
    )


@described(_describe_consumer)
def render_consumer(allocations: Sequence[Allocation], view: View) -> Json:
    """Render the allocations of a consumer, by provider; no owner if there are none."""
    by_provider = {each.provider_uuid: OF_CONSUMER(each, view) for each in allocations}
    about = ABOUT(allocations[0], view) if allocations else {}
    return {"allocations": by_provider, **about}


def _describe_provider(version: Version) -> Json:
    return closed_object(
        allocations=keyed(OF_PROVIDER.describe(version)),
        resource_provider_generation=INTEGER,
    )


@described(_describe_provider)
def render_provider(value: Belongings[Sequence[Allocation]], view: View) -> Json:
    """Render the allocations against a provider, by consumer."""
    by_consumer = {each.consumer.uuid: OF_PROVIDER(each, view) for each in value.parts}
    return {
        "allocations": by_consumer,
        "resource_provider_generation": value.generation,
    }

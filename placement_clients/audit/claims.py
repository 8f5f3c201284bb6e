"""Reads claims, from any Placement."""

import contextlib
import dataclasses
from collections.abc import Mapping

from placement_clients import record
from placement_clients.audit.life import UNKNOWN, Allocation, Claim, Owner
from placement_clients.client import Client, path_of
from placement_clients.errors import NotFound, NotSupported
from placement_clients.record import Json
from placement_foundation.observing.progress import Progress

SHARES = "MISC_SHARES_VIA_AGGREGATE"
FLEET = "/ledger/v1/fleet"
FIELDS = "parent,traits,consumers"
# How many entries of the history of a consumer are read at a time.
PAGE = "1000"
# The first version with types of consumers, and the first that guards writes of claims.
TYPED, GUARDED = "1.38", "1.28"
PARSE_PROVIDER = record.parser_with(
    uuid=str, root_provider_uuid=str, traits=list, allocations=dict
)
PARSE_ALLOCATIONS = record.parser_with(allocations=dict)


def read(placement: Client, progress: Progress) -> dict[str, Claim]:
    """Return the claim of each consumer.

    They are of one moment where the service has ``/ledger/v1``; otherwise providers are
    read one by one, and a claim that moves meanwhile may occur twice, or not at all.
    """
    try:
        return placement.retry_while_busy(lambda: _read_fleet(placement, progress))
    except (NotFound, NotSupported):
        return _read_one_by_one(placement, progress)


def _read_fleet(placement: Client, progress: Progress) -> dict[str, Claim]:
    claims: dict[str, Claim] = {}
    root, root_name = "", ""
    lines = placement.lines(FLEET, version="latest", query={"fields": FIELDS})
    progress.begin("reading claims")
    for line in lines:
        # The last line has the cursor of the feed.
        if isinstance(line, dict) and "uuid" not in line:
            continue
        document = PARSE_PROVIDER(line)
        uuid, name = document["uuid"], document["name"]
        # The root of a tree comes before the rest.
        if document["root_provider_uuid"] != root:
            root, root_name = document["root_provider_uuid"], name
        is_shared = SHARES in document["traits"]
        for consumer, each in document["allocations"].items():
            claim = claims.setdefault(consumer, Claim(consumer))
            claim.owner = Owner(**{member: each.get(member) for member in _OWNER})
            resources = each["resources"]
            claim.parts[uuid] = Allocation(
                name, (root, root_name), is_shared, resources
            )
        progress.advance()
    return claims


_OWNER = tuple(field.name for field in dataclasses.fields(Owner))


def _read_one_by_one(placement: Client, progress: Progress) -> dict[str, Claim]:
    claims: dict[str, Claim] = {}
    listed = placement.list_providers()
    names = {each.uuid: each.name for each in listed}
    shared = {
        each.uuid for each in placement.list_providers(required=SHARES, version="1.18")
    }
    progress.begin("reading claims", len(listed))
    for provider in listed:
        root = provider.root_uuid or provider.uuid
        place = (root, names.get(root, root))
        # The provider may have been deleted meanwhile.
        with contextlib.suppress(NotFound):
            held = placement.list_allocations_of_provider(provider.uuid)
            for consumer, resources in held.items():
                claim = claims.setdefault(consumer, Claim(consumer))
                is_shared = provider.uuid in shared
                part = Allocation(provider.name, place, is_shared, resources)
                claim.parts[provider.uuid] = part
        progress.advance()
    return claims


@dataclasses.dataclass(frozen=True, slots=True)
class Now:
    """The current claim of a consumer, in the form that claims the same again.

    :param body: that of ``PUT /allocations/{consumer}``, without a generation
    """

    amounts: Mapping[str, Mapping[str, int]]
    generation: int | None
    body: Json


def version_of(body: Json) -> str:
    """Return the microversion of a body: types of consumers are not optional."""
    return TYPED if "consumer_type" in body else GUARDED


def look(placement: Client, consumer: str) -> Now:
    """Return the current claim of a consumer."""
    path = path_of("allocations", consumer)
    try:
        document = placement.get(path, version=TYPED)
    except NotSupported:
        document = placement.get(path, version=GUARDED)
    amounts = {
        provider: each["resources"]
        for provider, each in PARSE_ALLOCATIONS(document)["allocations"].items()
    }
    body = {
        "allocations": {
            provider: {"resources": resources}
            for provider, resources in amounts.items()
        },
        "project_id": document.get("project_id"),
        "user_id": document.get("user_id"),
    }
    if document.get("consumer_type", UNKNOWN) != UNKNOWN:
        body["consumer_type"] = document["consumer_type"]
    return Now(amounts, document.get("consumer_generation"), body)


def story_of(placement: Client, claim: Claim) -> Json:
    """Return the entry of the journal about the claim of a consumer; None if unknown.

    It is the newest entry before which the consumer had no allocations.
    """
    query = {"consumer": claim.consumer, "type": "allocations", "limit": PAGE}
    while True:
        try:
            page = placement.get_ledger("history", query, history=list)
        except NotFound:
            return None
        for entry in page["history"]:
            if not entry["before"] and entry["after"]:
                return entry
        if "marker" not in page:
            return None
        query["marker"] = page["marker"]

"""Reads what is claimed, from any Placement."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping

from placement_clients import record
from placement_clients.adapter import path_of
from placement_clients.audit.life import UNKNOWN, Claim, Owner, Part, pack, unpack_part
from placement_clients.audit.spool import Row
from placement_clients.client import Client
from placement_clients.errors import NotFound, NotSupported
from placement_clients.record import Json
from placement_foundation.observing.progress import Progress

PART = "part"
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
PARSE_HISTORY = record.parser_with(history=list)


def read(placement: Client, progress: Progress) -> Iterator[Row]:
    """Yield what each consumer claims of each provider.

    It is of one moment where the service has ``/ledger/v1``; otherwise each provider is
    read by itself, so what moves meanwhile may occur twice, or not at all.
    """
    try:
        documents = placement.retry_while_busy(lambda: _begin(placement))
    except (NotFound, NotSupported):
        yield from _read_one_by_one(placement, progress)
        return
    progress.begin("reading claims")
    places: dict[str, tuple[str, str]] = {}
    for document in documents:
        # The last line says where the feed goes on.
        if isinstance(document, dict) and "uuid" not in document:
            continue
        yield from _read_provider(PARSE_PROVIDER(document), places)
        progress.advance()


def _begin(placement: Client) -> Iterator[Json]:
    """Return the documents of the fleet, of which the first has been read."""
    lines = placement.lines(FLEET, version="latest", query={"fields": FIELDS})
    first = list(itertools.islice(lines, 1))
    return itertools.chain(first, lines)


def _read_provider(document: Json, places: dict[str, tuple[str, str]]) -> Iterator[Row]:
    """Yield the claims of a provider; the root of a tree comes before the rest."""
    root = document["root_provider_uuid"]
    if root == document["uuid"]:
        places.clear()
        places[root] = (root, document["name"])
    is_shared = SHARES in document["traits"]
    for consumer, each in document["allocations"].items():
        part = Part(
            document["uuid"],
            document["name"],
            places.get(root, (root, root)),
            is_shared,
            each["resources"],
        )
        owner = Owner(**{name: each.get(name) for name in _OWNER})
        yield consumer, PART, {**pack(part), "owner": pack(owner)}


_OWNER = tuple(field.name for field in dataclasses.fields(Owner))


def _read_one_by_one(placement: Client, progress: Progress) -> Iterator[Row]:
    listed = placement.list_providers()
    names = {each.uuid: each.name for each in listed}
    shared = {
        each.uuid for each in placement.list_providers(required=SHARES, version="1.18")
    }
    progress.begin("reading claims", len(listed))
    for provider in listed:
        root = provider.root_uuid or provider.uuid
        try:
            held = placement.list_allocations_of_provider(provider.uuid)
        except NotFound:
            # It was deleted meanwhile.
            held = {}
        for consumer, resources in held.items():
            part = Part(
                provider.uuid,
                provider.name,
                (root, names.get(root, root)),
                provider.uuid in shared,
                resources,
            )
            yield consumer, PART, {**pack(part), "owner": None}
        progress.advance()


def join(consumer: str, documents: list[Json]) -> Claim:
    """Return the claim of a consumer, of the documents that ``read`` has yielded."""
    owner = Owner()
    parts = {}
    for document in documents:
        known = document.pop("owner")
        owner = Owner(**known) if known else owner
        part = unpack_part(document)
        parts[part.provider] = part
    return Claim(consumer, tuple(parts.values()), owner)


@dataclasses.dataclass(frozen=True, slots=True)
class Now:
    """What a consumer claims now, as it is written again to claim the same.

    :param body: what ``PUT /allocations/{consumer}`` takes, without a generation
    """

    amounts: Mapping[str, Mapping[str, int]]
    generation: int | None
    body: Json

    @property
    def version(self) -> str:
        """The microversion that the body is of."""
        return version_of(self.body)


def version_of(body: Json) -> str:
    """Return the microversion of a body: types of consumers are not optional."""
    return TYPED if "consumer_type" in body else GUARDED


def look(placement: Client, consumer: str) -> Now:
    """Return what a consumer claims at this moment."""
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

    It is the one before which the consumer had nothing, the newest of them.
    """
    query = {"consumer": claim.consumer, "type": "allocations", "limit": PAGE}
    while True:
        try:
            page = PARSE_HISTORY(
                placement.get("/ledger/v1/history", version="latest", query=query)
            )
        except NotFound:
            return None
        for entry in page["history"]:
            if not entry["before"] and entry["after"]:
                return entry
        if "marker" not in page:
            return None
        query["marker"] = page["marker"]

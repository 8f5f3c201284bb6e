"""Booting servers together: all of them, or none.

A service with ``/ledger/v1/placements`` chooses and claims in one request. With any
other, a single server can be booted, by candidates and a claim.
"""

import dataclasses
from collections.abc import Iterable, Sequence

from placement_clients import record
from placement_clients.client import Client
from placement_clients.errors import BadRequest, Conflict, NotFound
from placement_clients.record import Json
from placement_clients.request import boot, explanation
from placement_clients.request.boot import Server
from placement_clients.request.errors import BadInput, NoValidHost, ServerTaken
from placement_clients.request.explanation import Explanation
from placement_clients.request.request import Request, refusal
from placement_clients.request.wish import Wish

PATH = "/ledger/v1/placements"
NO_ROOM = "placement.no_room"
# What a consumer is where its type must be named.
CONSUMER_TYPE = "INSTANCE"
ONLY_THERE = (
    "this Placement does not have /ledger/v1/placements: it takes one server at a "
    "time, without a spread, preferences and a lease"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Placed:
    """Where a server is. One that ``existed`` was there before; it has no mappings.

    ``allocations`` are as in a candidate; ``expires_at`` is the time at which they end,
    if they do.
    """

    server: str
    host: str
    existed: bool
    allocations: Json
    mappings: dict[str, list[str]]
    expires_at: str | None = None


def place(
    placement: Client, servers: Sequence[Server], request: Request, wanted: Wish
) -> list[Placed]:
    """Find hosts for servers of one owner, and claim what they need: for all or none.

    A server that is there already keeps what it has, if it belongs to the same owner
    and is not the only one: so the same call may be made again if its answer was lost.

    :raises NoValidHost: there is not room for all
    :raises ServerTaken: one holds something already: the only one, or one that belongs
        to another project or user
    :raises BadInput: the request is wrong; or the service cannot do what is wished
    :raises Unavailable: there is no answer, and some or all may have been booted if it
        ``may_have_succeeded``
    """
    if request.problems:
        raise BadInput(request.problems)
    try:
        placed = _in_one(placement, servers, request, wanted)
    except NotFound:
        return _boot(placement, servers, request, wanted)
    if len(servers) == 1 and placed[0].existed:
        raise ServerTaken(_held(placed[0].server, placed[0].allocations))
    return placed


def _in_one(
    placement: Client, servers: Sequence[Server], request: Request, wanted: Wish
) -> list[Placed]:
    """Place all servers in one request.

    :raises NotFound: the service does not offer that
    """
    # The query says what each server needs, not how many candidates to list.
    query = dataclasses.replace(request, limit=None).query
    owner = servers[0]
    body = {
        "query": query,
        "consumers": [each.uuid for each in servers],
        "project_id": owner.project_id,
        "user_id": owner.user_id,
        "consumer_type": owner.consumer_type or CONSUMER_TYPE,
        **wanted.members,
    }
    try:
        answer = placement.post(PATH, body, version="1.36")
    except BadRequest as exc:
        raise refusal(request, exc) from exc
    except Conflict as exc:
        if exc.code != NO_ROOM:
            raise ServerTaken(f"nothing is booted: {exc.reason}") from exc
        raise _no_room(placement, query, exc, len(servers)) from exc
    return _parse(answer.document)


def _no_room(
    placement: Client, query: str, refused: Conflict, number: int
) -> NoValidHost:
    why = Explanation.parse((refused.document or {}).get("explanation"))
    if number == 1:
        reason = "Placement has no candidate for this request"
        return NoValidHost(reason, why or explanation.ask(placement, query))
    return NoValidHost(refused.reason, why)


@record.parser
def _parse(document: Json) -> list[Placed]:
    return [
        Placed(
            each["consumer"],
            each["host"] or next(iter(each["allocations"])),
            each["existed"],
            each["allocations"],
            each.get("mappings", {}),
            each["expires_at"],
        )
        for each in document["placements"]
    ]


def _held(server: str, providers: Iterable[str]) -> str:
    return (
        f"server {server} is not booted: it holds something of "
        f"{', '.join(sorted(providers))} already"
    )


def _boot(
    placement: Client, servers: Sequence[Server], request: Request, wanted: Wish
) -> list[Placed]:
    """Boot a server by candidates and a claim, where the service places none.

    :raises BadInput: more than that is wished
    """
    if len(servers) > 1 or wanted.members:
        raise BadInput([ONLY_THERE])
    [server] = servers
    booted = boot.boot(placement, server, request)
    claimed = booted.candidate
    return [
        Placed(server.uuid, booted.host, False, claimed.allocations, claimed.mappings)
    ]

"""Booting servers together: all of them, or none.

A service with ``/ledger/v1/placements`` chooses and claims in one request. With any
other, a single server can be booted, by candidates and a claim.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from placement_clients import record
from placement_clients.client import Client
from placement_clients.errors import BadRequest, Conflict, NotFound
from placement_clients.record import Json
from placement_clients.request import boot
from placement_clients.request.boot import Placed, Server
from placement_clients.request.errors import BadInput, NoValidHost, ServerTaken
from placement_clients.request.request import Request, refusal

PATH = "/ledger/v1/placements"
NO_ROOM = "placement.no_room"
# The consumer type, where one is required.
CONSUMER_TYPE = "INSTANCE"
ONLY_THERE = (
    "this Placement does not have /ledger/v1/placements: it takes one server at a "
    "time, without a spread, preferences and a lease"
)


def place(
    placement: Client,
    servers: Sequence[Server],
    request: Request,
    wishes: Mapping[str, Json],
) -> list[Placed]:
    """Find hosts for servers of one owner, and claim what they need: for all or none.

    A server with allocations keeps them, if it belongs to the same owner and is not the
    only one: so the same call may be made again if its answer was lost.

    :param wishes: members of a request for placements, such as ``spread`` and
        ``prefer``; where the service has none, only a single server without wishes can
        be booted, by candidates and a claim
    :raises NoValidHost: there is not room for all
    :raises ServerTaken: a server has allocations already: the only one, or one that
        belongs to another project or user
    :raises BadInput: the request is wrong; or the service does not support the wishes
    :raises Unavailable: there is no answer, and some or all may have been booted if it
        ``may_have_succeeded``
    """
    if request.problems:
        raise BadInput(*request.problems)
    # The query says what each server needs, not how many candidates to list.
    query = dataclasses.replace(request, limit=None).query
    owner = servers[0]
    body = {
        "query": query,
        "consumers": [each.uuid for each in servers],
        "project_id": owner.project_id,
        "user_id": owner.user_id,
        "consumer_type": owner.consumer_type or CONSUMER_TYPE,
        **wishes,
    }
    try:
        placed = _parse(placement.post(PATH, body, version="1.36"))
    except NotFound as exc:
        if len(servers) > 1 or wishes:
            raise BadInput(ONLY_THERE) from exc
        return [boot.boot(placement, owner, request)]
    except BadRequest as exc:
        raise refusal(request, exc) from exc
    except Conflict as exc:
        if exc.code != NO_ROOM:
            raise ServerTaken(f"nothing is booted: {exc.reason}") from exc
        raise _no_room(placement, query, exc, len(servers)) from exc
    if len(servers) == 1 and placed[0].existed:
        raise boot.taken(owner.uuid, placed[0].allocations)
    return placed


def _no_room(
    placement: Client, query: str, refused: Conflict, number: int
) -> NoValidHost:
    why = (refused.document or {}).get("explanation")
    if number == 1:
        reason = "Placement has no candidate for this request"
        return NoValidHost(reason, why or boot.explain(placement, query))
    return NoValidHost(refused.reason, why)


@record.parser
def _parse(document: Json) -> list[Placed]:
    return [
        Placed(
            each["consumer"],
            each["host"] or next(iter(each["allocations"])),
            each["allocations"],
            each.get("mappings", {}),
            each["existed"],
            each["expires_at"],
        )
        for each in document["placements"]
    ]

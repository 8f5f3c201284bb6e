"""Choosing a host for a server, and claiming the resources that the server needs."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable

from placement_clients.client import Client, path_of
from placement_clients.errors import BadRequest, Conflict, PlacementError, Unavailable
from placement_clients.record import Candidate, Candidates, Json
from placement_clients.request.errors import BadInput, NoValidHost, ServerTaken
from placement_clients.request.request import Request, refusal

SHARING = "MISC_SHARES_VIA_AGGREGATE"
CONSUMER_TYPE_SINCE = "1.38"

# Sorts candidates into the order in which they are tried, or leaves some out.
Weigher = Callable[[Candidates], Iterable[Candidate]]


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A server to boot, and its owner. A consumer type needs microversion 1.38."""

    uuid: str
    project_id: str
    user_id: str
    consumer_type: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Placed:
    """Where a server is: the host's UUID, and the allocations, as in a candidate.

    One that ``existed`` was there before; it has no mappings. ``expires_at`` is the
    time at which the allocations end, if they do.
    """

    server: str
    host: str
    allocations: Json
    mappings: dict[str, list[str]]
    existed: bool = False
    expires_at: str | None = None


def find(placement: Client, request: Request) -> Candidates:
    """Return the candidates for a request, at least one.

    :raises NoValidHost: there are none
    :raises BadInput: the request has problems, and is not sent; or Placement refuses it
        for another reason
    """
    if request.problems:
        raise BadInput(*request.problems)
    try:
        candidates = placement.list_candidates(request.query)
        if candidates.found:
            return candidates
        why = explain(placement, request.query)
    except BadRequest as exc:
        raise refusal(request, exc) from exc
    raise NoValidHost("Placement has no candidate for this request", why)


def explain(placement: Client, query: str) -> Json:
    """Return why a query has no candidates, as ``/ledger/v1/explanation`` answers.

    Most services do not offer that, and nothing depends on it: then it is None.

    :raises BadRequest: the query names something that does not exist, which a search
        that ends early does not notice
    """
    try:
        return placement.get_ledger("explanation", query, summary=str)
    except BadRequest:
        raise
    except PlacementError:
        return None


def in_order(candidates: Candidates) -> Iterable[Candidate]:
    """Leave candidates in the order in which Placement gave them."""
    return candidates.found


def boot(
    placement: Client, server: Server, request: Request, weigh: Weigher = in_order
) -> Placed:
    """Find a host for a server and claim it.

    :raises NoValidHost: there is no candidate, or other clients took the room of all
    :raises ServerTaken: the server has allocations already
    :raises BadInput: the request is wrong, see ``find``
    :raises Unavailable: there is no answer. A release of the possible claim has been
        attempted
    """
    candidates = find(placement, request)
    if held := placement.get_allocations(server.uuid):
        raise taken(server.uuid, held)
    tried = 0
    for candidate in weigh(candidates):
        tried += 1
        try:
            claimed = _claim(placement, server, candidate)
        except BadRequest as exc:
            raise refusal(request, exc) from exc
        if claimed:
            host = host_of(candidate, candidates.summaries)
            return Placed(server.uuid, host, candidate.allocations, candidate.mappings)
    which = f"none of {tried} candidates has" if tried > 1 else "the candidate has no"
    raise NoValidHost(f"others were faster: {which} room any more")


def taken(server: str, providers: Iterable[str]) -> ServerTaken:
    """Return the error for a server that holds something already."""
    return ServerTaken(
        f"server {server} is not booted: it holds something of "
        f"{', '.join(sorted(providers))} already"
    )


def host_of(candidate: Candidate, summaries: Json) -> str:
    """Return the root of the candidate's providers, leaving out sharing ones."""
    providers = list(candidate.allocations)
    own = [each for each in providers if SHARING not in summaries[each]["traits"]]
    return str(summaries[(own or providers)[0]]["root_provider_uuid"])


def _claim(placement: Client, server: Server, candidate: Candidate) -> bool:
    """Claim a candidate; return whether there was still room.

    :raises ServerTaken: another client booted the server meanwhile
    """
    path = path_of("allocations", server.uuid)
    body = {
        "allocations": candidate.allocations,
        "mappings": candidate.mappings,
        "project_id": server.project_id,
        "user_id": server.user_id,
        "consumer_generation": None,
    }
    version = "1.36"
    if server.consumer_type:
        version, body["consumer_type"] = CONSUMER_TYPE_SINCE, server.consumer_type

    def claim() -> None:
        try:
            placement.put(path, body, version=version)
        except Conflict as exc:
            # Another client's claim came first: of all conflicts, this one is final.
            if "consumer generation conflict" in exc.detail:
                raise ServerTaken(
                    f"server {server.uuid} is not booted: another client has booted it "
                    "at the same time"
                ) from exc
            raise

    try:
        placement.retry_lost_races(claim)
    except Conflict:
        return False
    except BadRequest as exc:
        # A provider of the candidate has been deleted.
        if "that does not exist" not in exc.detail:
            raise
        return False
    except Unavailable as exc:
        if exc.may_have_succeeded:
            # The first error is more useful than one of this release.
            with contextlib.suppress(PlacementError):
                placement.delete(path, version="1.0")
        raise
    return True

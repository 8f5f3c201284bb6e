"""Booting servers together: all of them, or none.

A service with ``/ledger/v1/placements`` chooses and claims in one request. With any
other, the servers are booted one after the other; if one of them finds no host, what
the others got is given back.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from placement_clients import record
from placement_clients.client import (
    BadRequest,
    Candidate,
    Candidates,
    Client,
    Conflict,
    Json,
    NotFound,
    PlacementError,
    Unavailable,
)
from placement_clients.request import boot, explanation, wish
from placement_clients.request.boot import Server
from placement_clients.request.errors import BadInput, NoValidHost, ServerTaken
from placement_clients.request.explanation import Explanation
from placement_clients.request.request import Request, refusal
from placement_clients.request.wish import HOST, Wish

PATH = "/ledger/v1/placements"
NO_ROOM = "placement.no_room"
# What a consumer is where its type must be named.
CONSUMER_TYPE = "INSTANCE"
ONLY_THERE = (
    "this Placement does not have /ledger/v1/placements, without which {} cannot be "
    "asked for"
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
        ``may_have_succeeded``; or some keep what they got
    """
    if request.problems:
        raise BadInput(request.problems)
    try:
        placed = _in_one(placement, servers, request, wanted)
    except NotFound:
        return _one_by_one(placement, servers, request, wanted)
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


# Where the service cannot place servers by itself


def _one_by_one(
    placement: Client, servers: Sequence[Server], request: Request, wanted: Wish
) -> list[Placed]:
    """Boot one server after the other; if there is no room for one, undo it all."""
    _check_possible(wanted)
    placed: list[Placed] = []
    try:
        if len(servers) > 1:
            placed += _list_existing(placement, servers)
        existing = {each.server for each in placed}
        weigher = _Weigher(placement, wanted, [each.host for each in placed])
        for server in servers:
            if server.uuid in existing:
                continue
            booted = boot.boot(placement, server, request, weigher.weigh)
            weigher.hosts[booted.host] += 1
            candidate = booted.candidate
            claimed = candidate.allocations, candidate.mappings
            placed.append(Placed(server.uuid, booted.host, False, *claimed))
    except BaseException as exc:
        kept = _undo(placement, placed)
        if kept and isinstance(exc, Exception):
            raise Unavailable(f"{exc}; {kept}") from exc
        raise
    order = [server.uuid for server in servers]
    return sorted(placed, key=lambda each: order.index(each.server))


def _check_possible(wanted: Wish) -> None:
    problems = []
    if wanted.lease_seconds is not None:
        problems.append(ONLY_THERE.format("a lease"))
    if wanted.spread not in (None, HOST):
        problems.append(ONLY_THERE.format("a spread over aggregates"))
    if problems:
        raise BadInput(problems)


def _list_existing(placement: Client, servers: Iterable[Server]) -> Iterator[Placed]:
    """Yield the servers that hold something already.

    :raises ServerTaken: one of them belongs to another owner
    """
    for server in servers:
        held = placement.get_allocations(server.uuid)
        if not held.by_provider:
            continue
        if (held.project_id, held.user_id) != (server.project_id, server.user_id):
            raise ServerTaken(_held(server.uuid, held.by_provider))
        first = min(held.by_provider)
        host = placement.get_provider(first).root_uuid or first
        allocations = {
            provider: {"resources": resources}
            for provider, resources in held.by_provider.items()
        }
        yield Placed(server.uuid, host, True, allocations, {})


def _undo(placement: Client, placed: Iterable[Placed]) -> str:
    """Give back what servers got; return what could not be given back, and why."""
    kept, why = [], ""
    for each in placed:
        if not each.existed:
            try:
                placement.delete_allocations(each.server)
            except NotFound:
                continue
            except PlacementError as exc:
                kept.append(each.server)
                why = str(exc)
    if not kept:
        return ""
    return f"what servers {', '.join(kept)} got could not be given back: {why}"


class _Weigher:
    """Sorts candidates by preference, and leaves out hosts that have enough servers."""

    def __init__(self, placement: Client, wanted: Wish, hosts: Iterable[str]) -> None:
        self._wanted = wanted
        self.hosts = Counter(hosts)
        self._within = {
            each.name: frozenset(
                provider.uuid
                for provider in placement.list_providers(member_of=each.name)
            )
            for each in wanted.prefer
            if each.quality == "aggregate"
        }

    def weigh(self, candidates: Candidates) -> Iterator[Candidate]:
        """Yield the candidates that may be tried, the best first."""
        trees: dict[str, dict[str, Json]] = {}
        for uuid, each in candidates.summaries.items():
            trees.setdefault(each["root_provider_uuid"], {})[uuid] = each

        def rank(candidate: Candidate) -> float:
            root = boot.host_of(candidate, candidates.summaries)
            taken = candidate.allocations
            return -wish.score(self._wanted, root, trees[root], taken, self._within)

        found = candidates.found
        for candidate in sorted(found, key=rank) if self._wanted.prefer else found:
            host = boot.host_of(candidate, candidates.summaries)
            if self._wanted.spread is None or self.hosts[host] < self._wanted.at_most:
                yield candidate

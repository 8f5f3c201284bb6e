"""Deletes the claims of orphans, and restores deleted claims."""

import datetime
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from placement_clients.audit import claims, undo
from placement_clients.audit.audit import Audit
from placement_clients.audit.judging import Finding
from placement_clients.audit.life import Claim
from placement_clients.client import Client, path_of
from placement_clients.errors import BadRequest, Conflict
from placement_clients.record import Json

RELEASED, RESTORED, THERE = "released", "restored", "already there"
LEFT = "left: "


def release(
    audit: Audit,
    orphans: Sequence[Finding],
    older_than: datetime.timedelta,
    path: Path,
    report: Callable[[str, str], None],
) -> None:
    """Release orphans, and note the result of each.

    :param older_than: how long a claim must have existed; zero means any time, even if
        that is not known
    :param path: the file to which each claim is written before its release
    :param report: takes a consumer, and the result of its release
    :raises NotAnswered: a source does not answer any more
    :raises OSError: the file cannot be written
    """
    with undo.created(path) as add:
        for finding in orphans:
            claim = finding.claim
            finding.result = reason_to_leave(claim, older_than) or _release(
                audit, claim, add
            )
            report(claim.consumer, finding.result)


def reason_to_leave(claim: Claim, older_than: datetime.timedelta) -> str | None:
    """Return why a claim is too young to be released, if it is."""
    if not older_than:
        return None
    created = claim.owner.created
    if created is None:
        return f"{LEFT}its age is not known; --older-than 0 does not need it"
    if datetime.datetime.now(datetime.UTC) - created < older_than:
        return f"{LEFT}claimed at {claim.owner.created_at}, which is too recent"
    return None


def _release(audit: Audit, claim: Claim, add: Callable[[str, Json], None]) -> str:
    """Release a claim if the finding still holds; return the result."""
    now = claims.look(audit.placement, claim.consumer)
    if now.amounts != claim.amounts:
        return f"{LEFT}it has changed meanwhile"
    if not audit.is_orphan(claim):
        return f"{LEFT}its consumer lives"
    add(claim.consumer, now.body)
    path = path_of("allocations", claim.consumer)
    body = {**now.body, "allocations": {}, "consumer_generation": now.generation}
    try:
        audit.placement.put(path, body, version=claims.version_of(now.body))
    except Conflict:
        return f"{LEFT}it has changed meanwhile"
    except BadRequest as exc:
        return f"{LEFT}{exc.reason}"
    return RELEASED


def restore(placement: Client, path: Path) -> Iterator[tuple[str, str]]:
    """Restore released claims; yield consumers, and the result of each.

    :raises Unusable: the file is not an undo file
    """
    for consumer, body in undo.read(path):
        yield consumer, _restore(placement, consumer, body)


def _restore(placement: Client, consumer: str, body: Json) -> str:
    now = claims.look(placement, consumer)
    if now.amounts:
        return THERE if now.body == body else f"{LEFT}it has another claim now"
    try:
        placement.retry_lost_races(
            lambda: placement.put(
                path_of("allocations", consumer),
                {**body, "consumer_generation": None},
                version=claims.version_of(body),
            )
        )
    except (BadRequest, Conflict) as exc:
        return f"{LEFT}{exc.reason}"
    return RESTORED

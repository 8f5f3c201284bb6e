"""Compares the claim of a consumer with the expected one: a pure function."""

import contextlib
import dataclasses
import uuid
from collections.abc import Iterator, Sequence

from placement_clients.audit.life import Claim, Expected, Living, Source
from placement_clients.record import Json

ORPHAN, MISSING, HOST, AMOUNTS = "orphan", "missing", "wrong host", "wrong amounts"
KINDS = {
    ORPHAN: "claims whose consumer no longer lives",
    MISSING: "consumers that live and claim nothing",
    HOST: "claims on another host than the consumer's",
    AMOUNTS: "claims of other amounts than the consumer's",
}


@dataclasses.dataclass(slots=True)
class Finding:
    """A claim that does not fit its consumer, and the expected one.

    ``claimed`` is the entry of the journal about the claim of an orphan, None if it is
    not known; ``result`` is that of its release, empty if none was attempted.
    """

    kind: str
    claim: Claim
    expected: Expected | None = None
    claimed: Json = None
    result: str = ""


def judge(
    claim: Claim, lives: Sequence[Living], sources: Sequence[Source], *, lived: bool
) -> Iterator[Finding]:
    """Yield the findings about one consumer.

    :param claim: has no parts if the consumer claims nothing
    :param lives: the reports of sources about the consumer, empty if it does not live
    :param lived: whether it lived at the earlier reading
    """
    if not lives:
        if claim.parts and not lived and is_dead(claim, sources):
            yield Finding(ORPHAN, claim)
        return
    expected = [each.expected for each in lives if each.expected]
    if len(expected) < len(lives):
        return
    # More than one source may expect something; the same fault is one finding.
    kinds: set[str] = set()
    for each in expected:
        kind = _fault(claim, each)
        if kind and kind not in kinds:
            kinds.add(kind)
            yield Finding(kind, claim, each)


def is_dead(claim: Claim, sources: Sequence[Source]) -> bool:
    """Return whether a source would list the consumer, and none keeps the claim."""
    is_judged = any(source.knows(claim) for source in sources)
    return is_judged and not any(source.keeps(claim) for source in sources)


def _fault(claim: Claim, expected: Expected) -> str | None:
    """Return the kind of finding, if a claim is not the expected one."""
    if not claim.parts:
        return MISSING
    if not is_at(claim, expected.host):
        return HOST
    return None if has(claim, expected) else AMOUNTS


def is_at(claim: Claim, host: str | None) -> bool:
    """Return whether a claim is on one host, but for what hosts share."""
    if host is None:
        return True
    names = {host}
    with contextlib.suppress(ValueError):
        # As Placement spells it.
        names.add(str(uuid.UUID(host)))
    return all(
        not names.isdisjoint(part.place)
        for part in claim.parts.values()
        if not part.is_shared
    )


def has(claim: Claim, expected: Expected) -> bool:
    """Return whether a claim has the amounts that are expected."""
    if expected.resources is None:
        return True
    left = claim.totals
    for names, amount in expected.resources.items():
        if sum(left.pop(name, 0) for name in names.split("+")) != amount:
            return False
    return not (expected.exact and left)

"""Reads claims and those that live, compares them, and looks again at what differs."""

import dataclasses
from collections.abc import Iterator, Sequence

from placement_clients.audit import claims
from placement_clients.audit.judging import (
    KINDS,
    ORPHAN,
    Finding,
    is_dead,
    judge,
)
from placement_clients.audit.life import (
    Claim,
    Living,
    Owner,
    Source,
    pack,
    render,
    unpack_living,
)
from placement_clients.audit.spool import Spool
from placement_clients.client import Client
from placement_clients.record import Json
from placement_foundation.observing.progress import Progress

# Kinds of notes: those that live, and those that lived before claims were read.
LIVING, LIVED = "living", "lived"


@dataclasses.dataclass(slots=True)
class Counts:
    """How much was compared."""

    claims: int = 0
    living: int = 0
    not_judged: int = 0


class Audit:
    """An audit of a Placement.

    :param sources: know who lives; a consumer lives if any of them says so
    """

    def __init__(
        self, placement: Client, sources: Sequence[Source], progress: Progress
    ) -> None:
        self._placement = placement
        self.sources = sources
        self._progress = progress
        self.counts = Counts()

    def run(self, found: Spool, *, twice: bool) -> None:
        """Fill a spool with a document for each thing that does not fit together.

        Claims are read before those that live: whatever claims is known to its service
        already. What differs is looked at again, one by one.

        :param twice: whether to read those that live before the claims as well
        :raises NotAnswered: a source does not say who lives
        :raises Unusable: a source is not understood
        """
        with Spool() as notes:
            if twice:
                notes.add((each.consumer, LIVED, {}) for each in self._living())
            notes.add(claims.read(self._placement, self._progress))
            notes.add((each.consumer, LIVING, pack(each)) for each in self._living())
            self._progress.begin("comparing")
            found.add(
                (each.claim.consumer, each.kind, self._document(each))
                for each in self._compare(notes)
            )

    def is_orphan(self, claim: Claim) -> bool:
        """Look once more whether the consumer of a claim does not live.

        :raises NotAnswered: a source does not say
        """
        if any(source.find(claim.consumer) for source in self.sources):
            return False
        return is_dead(claim, self.sources)

    def _living(self) -> Iterator[Living]:
        for source in self.sources:
            self._progress.begin(f"reading who lives: {source.name}")
            for each in source.living():
                yield each
                self._progress.advance()

    def _compare(self, notes: Spool) -> Iterator[Finding]:
        for consumer, rows in notes.by_consumer():
            parts = [document for kind, document in rows if kind == claims.PART]
            claim = claims.join(consumer, parts)
            lives = [unpack_living(consumer, d) for kind, d in rows if kind == LIVING]
            lived = any(kind == LIVED for kind, _ in rows)
            self._count(claim, lives)
            for finding in judge(claim, lives, self.sources, lived=lived):
                if again := self._look_again(finding):
                    yield again

    def _count(self, claim: Claim, lives: Sequence[Living]) -> None:
        self._progress.advance()
        # Several sources, or lines of a file, may name the same consumer.
        self.counts.living += bool(lives)
        if claim.parts:
            self.counts.claims += 1
            known = any(source.knows(claim) for source in self.sources)
            self.counts.not_judged += not lives and not known

    def _look_again(self, finding: Finding) -> Finding | None:
        """Return a finding if it is one at this moment, too.

        What has changed since it was read is being worked on, and is left to the next
        audit.
        """
        claim = finding.claim
        now = claims.look(self._placement, claim.consumer)
        if now.amounts != claim.amounts:
            return None
        if claim.parts:
            about = {
                name: now.body.get(name)
                for name in ("project_id", "user_id", "consumer_type")
            }
            owner = dataclasses.replace(claim.owner, **about)
            claim = dataclasses.replace(claim, owner=owner)
        if finding.kind == ORPHAN:
            if not self.is_orphan(claim):
                return None
        elif not self._is_settled(claim.consumer):
            return None
        return dataclasses.replace(finding, claim=claim)

    def _is_settled(self, consumer: str) -> bool:
        """Return whether a consumer lives and is neither built nor moved."""
        found = [source.find(consumer) for source in self.sources]
        lives = [each for each in found if each]
        is_listed = not all(source.can_look for source in self.sources)
        return bool(lives or is_listed) and all(each.expected for each in lives)

    def _document(self, finding: Finding) -> Json:
        claim = finding.claim
        document = {
            "kind": finding.kind,
            "consumer": claim.consumer,
            **pack(claim.owner),
            "allocations": render(claim),
            "expected": finding.expected and pack(finding.expected),
        }
        if finding.kind == ORPHAN:
            document["claimed"] = claims.story_of(self._placement, claim)
        return document


def claim_of(document: Json) -> Claim:
    """Return the claim of the document of a finding."""
    about = {field.name: document[field.name] for field in dataclasses.fields(Owner)}
    parts = [
        {
            "provider": provider,
            "name": each["name"],
            "place": (each["root"], each["root_name"]),
            "is_shared": False,
            "resources": each["resources"],
            "owner": about,
        }
        for provider, each in document["allocations"].items()
    ]
    return claims.join(document["consumer"], parts)


def count_kinds(found: Spool) -> dict[str, int]:
    """Return how many findings there are of each kind."""
    return {kind: found.count(kind) for kind in KINDS}

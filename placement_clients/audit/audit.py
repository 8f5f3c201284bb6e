"""Reads claims and living consumers, compares them, and checks differences again."""

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
from placement_clients.audit.life import Claim, Living, Source
from placement_clients.client import Client
from placement_foundation.observing.progress import Progress


@dataclasses.dataclass(slots=True)
class Counts:
    """How much was compared."""

    claims: int = 0
    living: int = 0
    not_judged: int = 0


@dataclasses.dataclass(slots=True)
class Audit:
    """An audit of a Placement.

    :param sources: report living consumers; a consumer lives if one of them reports it
    """

    placement: Client
    sources: Sequence[Source]
    progress: Progress
    counts: Counts = dataclasses.field(default_factory=Counts)

    def run(self, *, twice: bool) -> list[Finding]:
        """Return the findings, by consumer.

        Claims are read before living consumers: the service of a consumer with a claim
        lists it already. Differences are checked again, one by one.

        :param twice: whether to read living consumers before the claims as well
        :raises NotAnswered: a source does not report living consumers
        :raises Unusable: a source cannot be parsed
        """
        lived = {each.consumer for each in self._living()} if twice else set()
        held = claims.read(self.placement, self.progress)
        lives: dict[str, list[Living]] = {}
        for each in self._living():
            lives.setdefault(each.consumer, []).append(each)
        self.progress.begin("comparing")
        findings: list[Finding] = []
        for consumer in sorted(held.keys() | lives.keys()):
            claim = held.get(consumer) or Claim(consumer)
            living = lives.get(consumer, [])
            self._count(claim, living)
            judged = judge(claim, living, self.sources, lived=consumer in lived)
            some = sorted(judged, key=lambda finding: finding.kind)
            findings += filter(self._is_still_so, some)
        return findings

    def is_orphan(self, claim: Claim) -> bool:
        """Check again whether the consumer of a claim does not live.

        :raises NotAnswered: a source does not answer
        """
        if any(source.find(claim.consumer) for source in self.sources):
            return False
        return is_dead(claim, self.sources)

    def _living(self) -> Iterator[Living]:
        for source in self.sources:
            self.progress.begin(f"reading living consumers: {source.name}")
            for each in source.living():
                yield each
                self.progress.advance()

    def _count(self, claim: Claim, lives: Sequence[Living]) -> None:
        self.progress.advance()
        # Several sources, or lines of a file, may name the same consumer.
        self.counts.living += bool(lives)
        if claim.parts:
            self.counts.claims += 1
            is_judged = any(source.knows(claim) for source in self.sources)
            self.counts.not_judged += not lives and not is_judged

    def _is_still_so(self, finding: Finding) -> bool:
        """Return whether a finding still holds, and complete it.

        A claim that has changed since it was read is left to the next audit.
        """
        claim = finding.claim
        now = claims.look(self.placement, claim.consumer)
        if now.amounts != claim.amounts:
            return False
        if claim.parts:
            about = {
                name: now.body.get(name)
                for name in ("project_id", "user_id", "consumer_type")
            }
            claim.owner = dataclasses.replace(claim.owner, **about)
        if finding.kind != ORPHAN:
            return self._is_settled(claim.consumer)
        if not self.is_orphan(claim):
            return False
        finding.claimed = claims.story_of(self.placement, claim)
        return True

    def _is_settled(self, consumer: str) -> bool:
        """Return whether a consumer lives and is neither built nor moved."""
        answers = [source.find(consumer) for source in self.sources]
        lives = [each for each in answers if each]
        is_listed = not all(source.can_look for source in self.sources)
        return bool(lives or is_listed) and all(each.expected for each in lives)


def count_kinds(found: Sequence[Finding]) -> dict[str, int]:
    """Return how many findings there are of each kind."""
    return {kind: sum(each.kind == kind for each in found) for kind in KINDS}

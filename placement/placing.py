"""Carrying out a request for placements: read, choose, write; and again if need be.

The choice is made between two transactions. The second takes the locks, and writes only
if everything is still as it was and fits.
"""

import contextlib
import dataclasses
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import sqlalchemy as sa

from placement import errors, measure
from placement.forest import cache
from placement.forest.forest import Forest
from placement.microversion import MAXIMUM
from placement.model.allocation import Allocation, Claim, provider_uuids
from placement.model.consumer import WantedConsumer
from placement.objects import allocation, lease, placement
from placement.objects.allocation import Names
from placement.objects.placement import Ground, Known, Refused, Written
from placement.operation import Context
from placement.questions import candidate_query, candidates
from placement.questions.explanation import explanation
from placement.questions.explanation.explanation import ExplanationQuery
from placement.questions.explanation.report import Wanted
from placement.questions.placement import choosing, overlay
from placement.questions.placement.choosing import Chosen, Present
from placement.questions.placement.domain import domains_of
from placement.questions.placement.filling import Choice
from placement.schemas import explanation as explanation_wire
from placement.schemas.placement import Order, Placement, Placements
from placement_foundation import precedence
from placement_foundation.database import storage
from placement_foundation.database.storage import Database
from placement_foundation.http.schema import Json, View
from placement_foundation.observing import telemetry

# How long an explanation of why nothing fits may take, in seconds.
EXPLAIN = 1
TAKEN = (
    "Other requests took the room that was found for this one, again and again. Please "
    "retry."
)


@dataclasses.dataclass(frozen=True, slots=True)
class _Scene:
    """The cloud at one moment, and what consumers of the request have by then.

    ``names`` are those of the request. ``existing`` has the allocations of its
    consumers, and of those beside them, by UUID; ``ends`` when the leases of its
    consumers end.
    """

    forest: Forest
    names: Names
    existing: Mapping[str, Sequence[Allocation]]
    ends: Mapping[str, int]


class Placing:
    """One request for placements, and the choices that are good so far."""

    def __init__(self, database: Database, context: Context, order: Order) -> None:
        self._database = database
        self._cache = context.forest_cache
        self._limits = candidate_query.order_of(context.settings).limits
        self._order = order
        spread = order.wish.spread
        self._beside = spread.beside if spread else ()
        self._wanted = [
            WantedConsumer(
                uuid, order.project_id, order.user_id, type=order.consumer_type
            )
            for uuid in order.consumers
        ]
        self._good: dict[str, Choice] = {}

    def run(self) -> Placements:
        """Place the consumers, and return what became of them."""
        with _counted() as result:
            deadline = time.monotonic() + storage.PATIENCE
            while time.monotonic() < deadline:
                done = self._try()
                if done is not None:
                    result.append(_result_of(done))
                    return done
            raise errors.Busy(TAKEN)

    def _try(self) -> Placements | None:
        """Choose and write; return None if others were faster."""
        try:
            scene = self._database.read(self._load)
        except errors.ConcurrentUpdate:
            # That others were faster says nothing about whether there is room.
            return None
        waiting = self._waiting(scene)
        with telemetry.step("search"):
            chosen = self._choose(scene, waiting)
        placed = dict(zip(waiting, chosen.choices, strict=False))
        self._check_enough(scene, len(self._order.consumers) - len(waiting), chosen)
        if self._order.dry_run or not placed:
            return self._told(scene, chosen, placed, Written({}, None))
        try:
            written = self._write(scene, placed)
        except errors.ConcurrentUpdate as exc:
            self._keep(placed, exc.consumers if isinstance(exc, Refused) else ())
            return None
        return self._told(scene, chosen, placed, written)

    def _write(self, scene: _Scene, placed: Mapping[str, Choice]) -> Written:
        claims = [
            Claim(each, placed[each.uuid].amounts)
            for each in self._wanted
            if each.uuid in placed
        ]
        ground, seconds = self._ground(scene, placed), self._order.lease_seconds
        # Only the first attempt may rely on what was read before: the next one comes
        # after a lost race.
        known = [_known(scene, claims)]

        def write(connection: sa.Connection) -> Written:
            first = known.pop() if known else None
            return placement.write(connection, claims, ground, seconds, first)

        return self._database.write(write)

    def _load(self, connection: sa.Connection) -> _Scene:
        order = self._order
        if order.lease_seconds is not None:
            # A dry run would not find out when it writes.
            lease.check_kept(connection)
        uuids = {*order.consumers, *self._beside}
        # Taken first: what it reads decides which moment the transaction sees.
        kept = self._cache.load(connection) if self._cache else None
        names = allocation.load_names(
            connection, uuids, order.wish.class_names, self._wanted
        )
        existing = allocation.list_by_consumers(connection, uuids & names.consumers)
        own = [uuid for uuid in order.consumers if uuid in existing]
        ends = placement.load_ends(connection, own) if own else {}
        if kept is not None:
            return _Scene(kept.forest, names, existing, ends)
        part = None
        if not existing and not order.wish.names_all:
            part = candidates.part_of(order.wish.request)
        return _Scene(cache.load(connection, None, part), names, existing, ends)

    def _waiting(self, scene: _Scene) -> list[str]:
        """Return the consumers that are still to be placed.

        Those with a good choice come first.

        :raises ConcurrentUpdate: one exists that belongs to somebody else
        """
        order = self._order
        owner = (order.project_id, order.user_id, order.consumer_type)
        waiting = []
        for uuid in order.consumers:
            if uuid not in scene.existing:
                waiting.append(uuid)
                continue
            found = scene.existing[uuid][0].consumer
            if (found.project_id, found.user_id, found.type) != owner:
                raise errors.ConcurrentUpdate(
                    f"Consumer {uuid} has allocations already, and another project, "
                    "user or type."
                )
        return sorted(waiting, key=lambda uuid: uuid not in self._good)

    def _choose(self, scene: _Scene, waiting: Sequence[str]) -> Chosen:
        """Choose for all consumers that wait; good choices stay if that will do."""
        wish, present = self._order.wish, self._present(scene)
        good = [self._good[uuid] for uuid in waiting if uuid in self._good]
        kept: Sequence[Choice] = ()
        if good and not wish.together:
            kept = choosing.fitting(scene.forest, wish, good, present, self._limits)
        if kept:
            wanted = len(waiting) - len(kept)
            more = choosing.choose(
                scene.forest, wish, wanted, present, self._limits, kept=kept
            )
            if len(more.choices) == wanted:
                return dataclasses.replace(more, choices=(*kept, *more.choices))
        return choosing.choose(scene.forest, wish, len(waiting), present, self._limits)

    def _present(self, scene: _Scene) -> Present:
        used = {
            uuid: [each.provider_uuid for each in allocations]
            for uuid, allocations in scene.existing.items()
        }
        own = set(self._order.consumers)
        return Present(
            {uuid: used[uuid] for uuid in used.keys() & own},
            {uuid: used[uuid] for uuid in used.keys() - own},
        )

    def _check_enough(self, scene: _Scene, existing: int, chosen: Chosen) -> None:
        """Check that as many can be placed as must be.

        :raises NoRoom: they cannot
        :raises SearchExhausted: that is not known
        """
        could = existing + len(chosen.choices)
        if could >= self._order.at_least:
            return
        if chosen.exhausted:
            raise errors.SearchExhausted(
                f"It is not known whether {self._order.at_least} consumers can be "
                "placed: the search was ended before it had looked at all "
                f"combinations. {could} could be."
            )
        detail = (
            f"{self._order.at_least} of {len(self._order.consumers)} consumers must be "
            f"placed, and {could} could be."
        )
        if not chosen.exact:
            detail += " Another choice of hosts might have room for more."
        raise errors.NoRoom(detail, None if could else self._explain())

    def _explain(self) -> Json:
        # Nothing is locked any more, and it may take a second.
        precedence.stand_back()
        forest = self._database.read(
            lambda connection: cache.load(connection, self._cache)
        )
        asked = ExplanationQuery(self._order.wish.request, Wanted(seconds=EXPLAIN))
        answer = explanation.explain(forest, asked)
        return explanation_wire.render(answer, View(MAXIMUM))

    def _ground(self, scene: _Scene, placed: Mapping[str, Choice]) -> Ground:
        generations = {
            uuid: each[0].consumer.generation for uuid, each in scene.existing.items()
        }
        spread = self._order.wish.spread
        roots: set[str] = set()
        aggregates: set[str] = set()
        if spread and spread.beside:
            hosts = [choice.host for choice in placed.values()]
            if spread.domains.aggregates is None:
                roots = {host.uuid for host in hosts}
            else:
                for host in hosts:
                    aggregates.update(domains_of(host, spread.domains))
        return Ground(
            self._order.consumers,
            self._beside,
            generations,
            frozenset(roots),
            frozenset(aggregates),
        )

    def _keep(self, placed: Mapping[str, Choice], refused: Collection[str]) -> None:
        """Remember the choices that were good until others changed the ground."""
        self._good = {
            uuid: choice for uuid, choice in placed.items() if uuid not in refused
        }

    def _told(
        self,
        scene: _Scene,
        chosen: Chosen,
        placed: Mapping[str, Choice],
        written: Written,
    ) -> Placements:
        placements, unplaced = [], []
        for uuid in self._order.consumers:
            if uuid in scene.existing:
                placements.append(_existing(uuid, scene))
            elif uuid in placed:
                placements.append(_placed(uuid, placed[uuid], written))
            else:
                unplaced.append(uuid)
        return Placements(
            tuple(placements),
            tuple(unplaced),
            chosen.considered,
            chosen.exact,
            self._order.dry_run,
        )


def _known(scene: _Scene, claims: Iterable[Claim]) -> Known:
    found = {uuid: scene.forest.provider(uuid) for uuid in provider_uuids(claims)}
    return Known(scene.names, {uuid: each for uuid, each in found.items() if each})


def _existing(uuid: str, scene: _Scene) -> Placement:
    allocations = scene.existing[uuid]
    amounts = {each.provider_uuid: each.amounts for each in allocations}
    hosts = overlay.hosts_of(scene.forest, amounts)
    return Placement(
        uuid,
        hosts[0].uuid if hosts else None,
        hosts[0].name if hosts else None,
        existed=True,
        amounts=amounts,
        mappings=None,
        score=None,
        generation=allocations[0].consumer.generation,
        expires_at=scene.ends.get(uuid),
    )


def _placed(uuid: str, choice: Choice, written: Written) -> Placement:
    return Placement(
        uuid,
        choice.host.uuid,
        choice.host.name,
        existed=False,
        amounts=choice.amounts,
        mappings=choice.mappings,
        score=choice.score,
        generation=written.generations.get(uuid),
        expires_at=written.expires_at,
    )


def _result_of(done: Placements) -> str:
    if done.dry_run:
        return "dry_run"
    if done.unplaced:
        return "partly"
    return "existed" if all(each.existed for each in done.placements) else "placed"


@contextlib.contextmanager
def _counted() -> Iterator[list[str]]:
    """Count the result of a block, which it appends to a list, and time it."""
    began = time.perf_counter()
    result: list[str] = []
    try:
        yield result
    except errors.NoRoom:
        result.append("no_room")
        raise
    except errors.ServiceError as error:
        result.append("refused" if error.status < 500 else "failed")
        raise
    finally:
        telemetry.record(measure.PLACEMENTS, result=(result or ["failed"])[0])
        seconds = time.perf_counter() - began
        telemetry.record(measure.PLACEMENT_SECONDS, seconds)

"""Running a request for placements: read, choose, write; and again if need be.

The choice is made between two transactions. The second takes the locks, and writes only
if the ground of the choice still stands and all claims fit.
"""

import contextlib
import dataclasses
import time
from collections.abc import Collection, Mapping, Sequence

from placement import errors
from placement.forest import cache, loading
from placement.forest.forest import Forest
from placement.model.allocation import Allocation, Claim
from placement.model.consumer import WantedConsumer
from placement.model.entry import Ownership
from placement.objects import allocation, lease
from placement.objects import placing as stored
from placement.objects.ledger import Ledger
from placement.objects.placing import Ground, Refused, Standing, Written
from placement.objects.transaction import Connection
from placement.operation import Context
from placement.questions import candidates
from placement.questions.explanation import explanation
from placement.questions.explanation.explanation import Explanation, ExplanationQuery
from placement.questions.explanation.report import Wanted
from placement.questions.placing import choosing, overlay
from placement.questions.placing.choosing import Chosen, Present, Series
from placement.questions.placing.domain import domains_of
from placement.questions.placing.filling import Choice
from placement.questions.placing.order import Order, Placement, Placements
from placement_foundation.database import storage
from placement_foundation.observing import telemetry

# How long an explanation of why nothing fits may take, in seconds.
EXPLAIN = 1
TAKEN = (
    "Other requests took the room that was found for this one, again and again. Please "
    "retry."
)


@dataclasses.dataclass(frozen=True, slots=True)
class Scene:
    """The cloud at one moment, with the allocations of consumers of some requests.

    ``existing`` has the allocations of their consumers, and of those beside them, by
    UUID; ``ends`` when the leases of their consumers end.
    """

    forest: Forest
    existing: Mapping[str, Sequence[Allocation]]
    ends: Mapping[str, int]


class NoHostServes(errors.NoRoom):
    """There is no room for any consumer, for these ``reasons``."""

    def __init__(self, message: str, reasons: Explanation) -> None:
        super().__init__(message)
        self.reasons = reasons


class Placing:
    """One request for placements, and the choices that are good so far."""

    def __init__(self, ledger: Ledger, context: Context, order: Order) -> None:
        self.ledger = ledger
        self.cache = context.forest_cache
        self.order = order
        self._explaining = context.explaining
        self.limits = candidates.order_of(context.settings).limits
        spread = order.wish.spread
        self.beside = spread.beside if spread else ()
        self.wanted = [
            WantedConsumer(
                uuid, order.project_id, order.user_id, type=order.consumer_type
            )
            for uuid in order.consumers
        ]
        self._good: dict[str, Choice] = {}

    def run(self) -> Placements:
        """Place the consumers, and return their placements."""
        deadline = time.monotonic() + storage.PATIENCE
        while time.monotonic() < deadline:
            done = self._try()
            if done is not None:
                return done
        raise errors.Busy(TAKEN)

    def _try(self) -> Placements | None:
        """Choose and write; return None if other requests were faster."""
        try:
            scene = self.ledger.read(lambda connection: load(connection, [self]))
        except errors.ConcurrentUpdate:
            # A lost race does not show whether there is room.
            return None
        waiting = self._waiting(scene)
        with telemetry.step("search"):
            chosen = self._choose(scene, waiting)
        placed = dict(zip(waiting, chosen.choices, strict=False))
        self._check_enough(scene, len(self.order.consumers) - len(waiting), chosen)
        if self.order.dry_run or not placed:
            return self.told(scene, chosen, placed, Written({}, None))
        claims, ground = self.claims(placed), self._ground(scene, placed)
        seconds = self.order.lease_seconds
        try:
            written = self.ledger.write(
                lambda tx: stored.write(tx, claims, ground, seconds)
            )
        except errors.ConcurrentUpdate as exc:
            self._keep(placed, exc.consumers if isinstance(exc, Refused) else ())
            return None
        return self.told(scene, chosen, placed, written)

    def choose_beside(self, scene: Scene, series: Series) -> Chosen | None:
        """Choose for all consumers, in the room that earlier choices leave.

        Return None unless all of them are new and can be placed.
        """
        if not scene.existing.keys().isdisjoint(self.order.consumers):
            return None
        return series.choose(self.order.wish, len(self.order.consumers))

    def claims(self, placed: Mapping[str, Choice]) -> list[Claim]:
        """Return the claims of the consumers that have been placed."""
        return [
            Claim(each, placed[each.uuid].amounts)
            for each in self.wanted
            if each.uuid in placed
        ]

    def _waiting(self, scene: Scene) -> list[str]:
        """Return the consumers that are still to be placed.

        Those with a good choice come first.

        :raises ConcurrentUpdate: a consumer exists with another owner or type
        """
        order = self.order
        owner = (order.project_id, order.user_id, order.consumer_type)
        waiting = []
        for uuid in order.consumers:
            if uuid not in scene.existing:
                waiting.append(uuid)
                continue
            consumer = scene.existing[uuid][0].consumer
            if (consumer.project_id, consumer.user_id, consumer.type) != owner:
                raise errors.ConcurrentUpdate(
                    f"Consumer {uuid} has allocations already, and another project, "
                    "user or type."
                )
        return sorted(waiting, key=lambda uuid: uuid not in self._good)

    def _choose(self, scene: Scene, waiting: Sequence[str]) -> Chosen:
        """Choose for all waiting consumers; keep good choices if all fit with them."""
        wish, present = self.order.wish, self._present(scene)
        good = [self._good[uuid] for uuid in waiting if uuid in self._good]
        kept: Sequence[Choice] = ()
        if good and not wish.together:
            kept = choosing.fitting(scene.forest, wish, good, present, self.limits)
        if kept:
            missing = len(waiting) - len(kept)
            more = choosing.choose(
                scene.forest, wish, missing, present, self.limits, kept=kept
            )
            if len(more.choices) == missing:
                return dataclasses.replace(more, choices=(*kept, *more.choices))
        return choosing.choose(scene.forest, wish, len(waiting), present, self.limits)

    def _present(self, scene: Scene) -> Present:
        used = {
            uuid: [each.provider_uuid for each in allocations]
            for uuid, allocations in scene.existing.items()
        }
        own = set(self.order.consumers)
        return Present(
            {uuid: used[uuid] for uuid in used.keys() & own},
            {uuid: used[uuid] for uuid in used.keys() - own},
        )

    def _check_enough(self, scene: Scene, existing: int, chosen: Chosen) -> None:
        """Check that enough consumers can be placed.

        :raises NoRoom: too few can be placed
        :raises SearchExhausted: the search ended before that was clear
        """
        could = existing + len(chosen.choices)
        if could >= self.order.at_least:
            return
        if chosen.exhausted:
            raise errors.SearchExhausted(
                f"It is not known whether {self.order.at_least} consumers can be "
                "placed: the search was ended before it had looked at all "
                f"combinations. {could} could be."
            )
        detail = (
            f"{self.order.at_least} of {len(self.order.consumers)} consumers must be "
            f"placed, and {could} could be."
        )
        if not chosen.exact:
            detail += " Another choice of hosts might have room for more."
        reasons = None if could else self._explain()
        if reasons:
            raise NoHostServes(detail, reasons)
        raise errors.NoRoom(detail)

    def _explain(self) -> Explanation | None:
        """Return why nothing fits; None if too many explanations are in progress."""
        with (
            contextlib.suppress(errors.Busy),
            self._explaining.turn("Too many explanations are in progress."),
        ):
            return self._find_reasons()
        return None

    def _find_reasons(self) -> Explanation:
        # No lock is held any more: an explanation may take a second.
        forest = self.ledger.read(lambda connection: cache.load(connection, self.cache))
        query = ExplanationQuery(self.order.wish.request, Wanted(seconds=EXPLAIN))
        return explanation.explain(forest, query)

    def _ground(self, scene: Scene, placed: Mapping[str, Choice]) -> Ground:
        present = {uuid: _standing(each) for uuid, each in scene.existing.items()}
        spread = self.order.wish.spread
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
            self.order.consumers,
            self.beside,
            present,
            frozenset(roots),
            frozenset(aggregates),
        )

    def _keep(self, placed: Mapping[str, Choice], refused: Collection[str]) -> None:
        """Remember the choices that were not refused, for the next attempt."""
        self._good = {
            uuid: choice for uuid, choice in placed.items() if uuid not in refused
        }

    def told(
        self,
        scene: Scene,
        chosen: Chosen,
        placed: Mapping[str, Choice],
        written: Written,
    ) -> Placements:
        """Return the outcome of the request."""
        placements, unplaced = [], []
        for uuid in self.order.consumers:
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
            self.order.dry_run,
        )


def load(connection: Connection, placings: Sequence[Placing]) -> Scene:
    """Return the cloud, and the consumers of some requests to one database.

    :raises NoLeases: a lease is wanted, and there is no table for it
    """
    orders, forest_cache = [each.order for each in placings], placings[0].cache
    if any(order.lease_seconds is not None for order in orders):
        # A dry run writes nothing, so no later check would find this.
        lease.check_kept(connection)
    own = {uuid for order in orders for uuid in order.consumers}
    uuids = own.union(*(each.beside for each in placings))
    # The forest comes first: its read decides which moment the transaction sees.
    kept = forest_cache.load(connection) if forest_cache else None
    existing = allocation.list_by_consumers(connection, uuids)
    ends = stored.load_ends(connection, sorted(own & existing.keys()))
    if kept:
        return Scene(kept.forest, existing, ends)
    [order, *others] = orders
    needs_all = existing or others or order.wish.names_all
    part = None if needs_all else candidates.part_of(order.wish.request)
    return Scene(loading.load(connection, part), existing, ends)


def _standing(allocations: Sequence[Allocation]) -> Standing:
    """Return the state of a consumer, from its allocations."""
    consumer = allocations[0].consumer
    owner = Ownership(consumer.project_id, consumer.user_id, consumer.type)
    amounts = {each.provider_uuid: each.amounts for each in allocations}
    return Standing(consumer.generation, owner, amounts)


def _existing(uuid: str, scene: Scene) -> Placement:
    standing = _standing(scene.existing[uuid])
    hosts = overlay.hosts_of(scene.forest, standing.amounts)
    return Placement(
        uuid,
        hosts[0].uuid if hosts else None,
        hosts[0].name if hosts else None,
        existed=True,
        amounts=standing.amounts,
        mappings=None,
        score=None,
        generation=standing.generation,
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

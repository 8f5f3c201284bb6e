"""Requests for placements: choose a candidate for each consumer, and write it.

The choice is made between two transactions. The second takes the locks, and writes only
if the ground of the choice still stands and all claims fit; else, all begins again.

Simple requests that arrive together are written in one transaction. Most of the work
for one consumer is the transaction, which costs hardly more for several: so the next
requests gather while a transaction is under way.
"""

import contextlib
import dataclasses
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from placement import errors, measure
from placement.forest import cache, loading
from placement.forest.forest import Forest
from placement.model.allocation import Allocation, Claim
from placement.model.consumer import WantedConsumer
from placement.model.entry import Ownership
from placement.objects import aggregate, allocation, lease, locking, replacing
from placement.objects.ledger import Ledger
from placement.objects.locking import Held
from placement.objects.transaction import Connection, Transaction
from placement.operation import Context
from placement.questions.explanation import explanation
from placement.questions.explanation.explanation import Explanation, ExplanationQuery
from placement.questions.explanation.report import Wanted
from placement.questions.placing import choosing
from placement.questions.placing.choosing import Chosen, Present
from placement.questions.placing.filling import Choice, domains_of, hosts_of
from placement.questions.placing.query import Order, Placement, Placements
from placement_foundation.database import storage, trouble
from placement_foundation.database.origin import Origin
from placement_foundation.observing import telemetry

# How long an explanation of why nothing fits may take, in seconds.
EXPLAIN = 1
TAKEN = (
    "Other requests took the room that was found for this one, again and again. Please "
    "retry."
)
# A request for more consumers is worth a transaction of its own.
MOST_CONSUMERS = 10

# The outcome of a request; None means that the request has to run by itself.
_Outcome: TypeAlias = Placements | errors.DatabaseUnavailable | None


@dataclasses.dataclass(frozen=True, slots=True)
class Scene:
    """The cloud at one moment, with the allocations of consumers of some requests.

    ``existing`` has the allocations of their consumers, and of those beside them, by
    UUID; ``ends`` when the leases of their consumers end.
    """

    forest: Forest
    existing: Mapping[str, Sequence[Allocation]]
    ends: Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Ground:
    """The facts behind a choice, which must still hold when it is written.

    ``present`` are the consumers of the request and others beside them that have
    allocations, by UUID. ``locked_roots`` and ``locked_aggregates`` are the UUIDs of
    roots and aggregates that must not get other consumers meanwhile.
    """

    consumers: tuple[str, ...]
    beside: tuple[str, ...] = ()
    present: Mapping[str, "Standing"] = dataclasses.field(default_factory=dict)
    locked_roots: frozenset[str] = frozenset()
    locked_aggregates: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Standing:
    """The state of a consumer; its amounts are by provider UUID and class name.

    The generation is not enough: a consumer that was removed and created again begins
    with 1.
    """

    generation: int
    owner: Ownership
    amounts: Mapping[str, Mapping[str, int]]


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
    """The generations of consumers by UUID, and when their leases end, if they do."""

    generations: Mapping[str, int]
    expires_at: int | None


class Refused(errors.ConcurrentUpdate):
    """Nothing is written: the ground has moved, or some consumers have no room."""

    def __init__(self, consumers: Collection[str] = ()) -> None:
        super().__init__("The choice is no longer good.")
        self.consumers = frozenset(consumers)


class NoHostServes(errors.NoRoom):
    """There is no room for any consumer, for these ``reasons``."""

    def __init__(self, message: str, reasons: Explanation) -> None:
        super().__init__(message)
        self.reasons = reasons


class Placing:
    """One request for placements, and the choices that are good so far."""

    def __init__(self, ledger: Ledger, context: Context, order: Order) -> None:
        self.ledger = ledger
        self.context = context
        self.order = order
        self.limits = context.candidates.limits
        self.beside = order.wish.spread.beside if order.wish.spread else ()
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
            written = self.ledger.write(lambda tx: write(tx, claims, ground, seconds))
        except errors.ConcurrentUpdate as exc:
            # The choices that were not refused are kept for the next attempt.
            refused = exc.consumers if isinstance(exc, Refused) else ()
            self._good = {key: placed[key] for key in placed if key not in refused}
            return None
        return self.told(scene, chosen, placed, written)

    def claims(self, placed: Mapping[str, Choice]) -> list[Claim]:
        """Return the claims of the consumers that have been placed."""
        order = self.order
        owner = (order.project_id, order.user_id, order.consumer_type)
        return [
            Claim(WantedConsumer(uuid, *owner), placed[uuid].amounts)
            for uuid in order.consumers
            if uuid in placed
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
            self.context.explaining.turn("Too many explanations are in progress."),
        ):
            return self._find_reasons()
        return None

    def _find_reasons(self) -> Explanation:
        # No lock is held any more: an explanation may take a second.
        kept = self.context.forest_cache
        forest = self.ledger.read(lambda connection: cache.load(connection, kept))
        query = ExplanationQuery(self.order.wish.request, Wanted(seconds=EXPLAIN))
        return explanation.explain(forest, query)

    def _ground(self, scene: Scene, placed: Mapping[str, Choice]) -> Ground:
        present = {uuid: _standing(each) for uuid, each in scene.existing.items()}
        spread = self.order.wish.spread
        ground = Ground(self.order.consumers, self.beside, present)
        if not (spread and spread.beside):
            return ground
        # A domain is a root or an aggregate.
        domains = frozenset[str]().union(
            *(domains_of(choice.host, spread.domains) for choice in placed.values())
        )
        if spread.domains.aggregates is None:
            return dataclasses.replace(ground, locked_roots=domains)
        return dataclasses.replace(ground, locked_aggregates=domains)

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


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """One of the requests that are written together, and the choice for it.

    ``placed`` are the choices by UUID of the consumer.
    """

    asked: Placing
    chosen: Chosen
    placed: Mapping[str, Choice]


def place(ledger: Ledger, context: Context, order: Order) -> Placements:
    """Place the consumers of a request, and return their placements.

    :param ledger: the ledger whose origin is this request
    """
    began, result = time.perf_counter(), "failed"
    try:
        done = _place(Placing(ledger, context, order))
        result = _result_of(done)
        return done
    except errors.NoRoom:
        result = "no_room"
        raise
    except errors.ServiceError as error:
        if error.status < 500:
            result = "refused"
        raise
    finally:
        telemetry.record(measure.PLACEMENTS, result=result)
        telemetry.record(measure.PLACEMENT_SECONDS, time.perf_counter() - began)


def _result_of(done: Placements) -> str:
    if done.dry_run:
        return "dry_run"
    if done.unplaced:
        return "partly"
    return "existed" if all(each.existed for each in done.placements) else "placed"


def _place(request: Placing) -> Placements:
    done: _Outcome = None
    if _may_join(request.context, request.order):
        done = request.context.placings.do(request, _run)
    if isinstance(done, errors.DatabaseUnavailable):
        raise done
    return done or request.run()


def _may_join(context: Context, order: Order) -> bool:
    """Return whether a request is so simple that others may wait for it.

    A request whose choice takes long, or depends on other consumers, runs alone.
    """
    wish = order.wish
    return (
        context.forest_cache is not None
        and context.forest_cache.is_keeping
        and len(order.consumers) <= MOST_CONSUMERS
        and len(wish.request.groups) == 1
        and not wish.names_all
        and not order.lease_seconds
        and not order.dry_run
    )


def _run(asked: Sequence[Placing]) -> Sequence[_Outcome]:
    """Carry out some requests."""
    if len(asked) == 1:
        return [asked[0].run()]
    try:
        return _run_together(asked)
    except errors.DatabaseUnavailable as exc:
        cause = exc.__cause__
        if not (isinstance(cause, Exception) and trouble.is_busy(cause)):
            # Each request would wait again, and the transaction may be committed.
            return [_same(exc) for _ in asked]
        # A lock that one of the requests needs is held for long.
    except errors.ServiceError:
        # Others were faster, or one of the requests cannot be looked up or stored.
        pass
    return [None] * len(asked)


def _same(error: errors.DatabaseUnavailable) -> errors.DatabaseUnavailable:
    """Return the same error for another thread."""
    another = errors.DatabaseUnavailable(str(error))
    another.__cause__ = error.__cause__
    return another


def _run_together(asked: Sequence[Placing]) -> Sequence[Placements | None]:
    """Write all that can be placed in one transaction, which is tried once.

    :raises ServiceError: nothing is written
    """
    ledger = asked[0].ledger
    scene = ledger.read(lambda connection: load(connection, asked))
    with telemetry.step("search"):
        parts = _choose(scene, asked)
    if not parts:
        return [None] * len(asked)
    claims = [claim for each in parts for claim in each.asked.claims(each.placed)]
    consumers = tuple(claim.consumer.uuid for claim in claims)
    # The journal names the request behind each change.
    origins = {uuid: each.asked.ledger.origin for each in parts for uuid in each.placed}
    written = ledger.write(
        lambda tx: write(tx, claims, Ground(consumers), None, origins), attempts=1
    )
    done = {
        each.asked: each.asked.told(scene, each.chosen, each.placed, written)
        for each in parts
    }
    return [done.get(each) for each in asked]


def _choose(scene: Scene, asked: Sequence[Placing]) -> Sequence[_Part]:
    """Choose for one request after the other, in the room that earlier choices leave.

    Requests that fail are left out, and those for a consumer that is there already.
    """
    parts: list[_Part] = []
    series = choosing.Series(scene.forest, asked[0].limits)
    served = set(scene.existing)
    for each in asked:
        consumers = each.order.consumers
        chosen = None
        # A request that fails here fails again when it runs alone.
        with contextlib.suppress(errors.ServiceError):
            if served.isdisjoint(consumers):
                chosen = series.choose(each.order.wish, len(consumers))
        if chosen:
            served.update(consumers)
            placed = dict(zip(consumers, chosen.choices, strict=True))
            parts.append(_Part(each, chosen, placed))
    return parts


def load(connection: Connection, placings: Sequence[Placing]) -> Scene:
    """Return the cloud, and the consumers of some requests to one database.

    :raises NoLeases: a lease is wanted, and there is no table for it
    """
    orders = [each.order for each in placings]
    forest_cache = placings[0].context.forest_cache
    if any(order.lease_seconds is not None for order in orders):
        # A dry run writes nothing, so no later check would find this.
        lease.check_kept(connection)
    own = {uuid for order in orders for uuid in order.consumers}
    uuids = own.union(*(each.beside for each in placings))
    # The forest comes first: its read decides which moment the transaction sees.
    kept = forest_cache.load(connection) if forest_cache else None
    existing = allocation.list_by_consumers(connection, uuids)
    ends = _load_ends(connection, own & existing.keys()) if existing else {}
    forest = kept.forest if kept else loading.load(connection)
    return Scene(forest, existing, ends)


def write(
    tx: Transaction,
    claims: Collection[Claim],
    ground: Ground,
    lease_seconds: int | None,
    origins: Mapping[str, Origin] | None = None,
) -> Written:
    """Write all claims.

    :param origins: the requests behind consumers, by UUID, if not the transaction's
    :raises Refused: there is no longer room for each claim
    :raises NoLeases: a lease is wanted, and there is no table for it
    :raises Conflict: the database considers two different names equal
    """
    tx.origins = origins or {}
    if lease_seconds is not None:
        lease.check_kept(tx.connection)
    placed = {claim.consumer.uuid for claim in claims}
    names = locking.look_up(
        tx.connection,
        claims,
        consumers={*ground.consumers, *ground.beside},
        providers=ground.locked_roots,
    )
    held = locking.hold(tx, names)
    if ground.locked_aggregates:
        aggregate.lock(tx, sorted(ground.locked_aggregates))
    if not _stands(tx.connection, ground, held):
        raise Refused
    own = dataclasses.replace(
        held, rows=[row for row in held.rows if row.consumer_uuid in placed]
    )
    inventories = locking.load_inventories(tx.connection, own)
    refused = replacing.list_refused(claims, inventories, replacing.sum_up(own.rows))
    if refused:
        raise Refused([claim.consumer.uuid for claim, _ in refused])
    replacing.store_consumers(tx, own)
    replacing.write_held(tx, own)
    end = None
    if lease_seconds is not None:
        ids = locking.load_consumer_ids(tx.connection, placed)
        consumers = {key: uuid for uuid, key in ids.items()}
        end = lease.replace(tx, consumers, lease_seconds)
    before = {uuid: record.generation for uuid, record in held.consumers.items()}
    return Written({uuid: before.get(uuid, 0) + 1 for uuid in placed}, end)


def _stands(connection: Connection, ground: Ground, held: Held) -> bool:
    """Return whether the consumers are as they were when the choice was made."""
    using = replacing.amounts_of(held.rows)
    now = {
        uuid: Standing(record.generation, record.owner, using[uuid])
        for uuid, record in held.consumers.items()
        if uuid in using
    }
    if now != ground.present:
        return False
    if not ground.beside:
        return True
    # Another request may have created a consumer during the wait for locks.
    ids = locking.load_consumer_ids(connection, ground.beside)
    return ids.keys() <= held.consumers.keys()


def _load_ends(connection: Connection, uuids: Collection[str]) -> dict[str, int]:
    """Return when the leases of some consumers end, by UUID, without locking them."""
    ids = locking.load_consumer_ids(connection, uuids)
    ends = lease.load(connection, ids.values())
    return {uuid: ends[key] for uuid, key in ids.items() if key in ends}


def _standing(allocations: Sequence[Allocation]) -> Standing:
    """Return the state of a consumer, from its allocations."""
    consumer = allocations[0].consumer
    owner = Ownership(consumer.project_id, consumer.user_id, consumer.type)
    amounts = {each.provider_uuid: each.amounts for each in allocations}
    return Standing(consumer.generation, owner, amounts)


def _existing(uuid: str, scene: Scene) -> Placement:
    standing = _standing(scene.existing[uuid])
    hosts = hosts_of(scene.forest, standing.amounts)
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

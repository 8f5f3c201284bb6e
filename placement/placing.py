"""Requests for placements: choose a candidate for each consumer, and write it.

The choice is made between two transactions. The second takes the locks, and writes only
if the ground of the choice still stands and all claims fit; else, all begins again.

Simple requests that arrive together share the transactions, which are most of the work
for one consumer: the next requests gather while a transaction is under way. Whatever
prevents one of them is left to a second run, of each request by itself.
"""

import contextlib
import dataclasses
import functools
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from placement import errors, measure
from placement.forest import cache
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
from placement.questions.explanation.report import ExplanationQuery, Report
from placement.questions.placing import choosing
from placement.questions.placing.choosing import Chosen, Present
from placement.questions.placing.filling import Choice, domains_of, hosts_of
from placement.questions.placing.query import Order, Placement, Placements
from placement_foundation.database import storage, trouble
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
class Standing:
    """The state of a consumer; its amounts are by provider UUID and class name.

    The generation is not enough: a consumer that was removed and created again begins
    with 1.
    """

    generation: int
    owner: Ownership
    amounts: Mapping[str, Mapping[str, int]]


@dataclasses.dataclass(frozen=True, slots=True)
class Scene:
    """The cloud at one moment, with the consumers of some requests.

    ``existing`` has those of their consumers that have allocations, and of those beside
    them, by UUID; ``ends`` when the leases of their consumers end.
    """

    forest: Forest
    existing: Mapping[str, Standing]
    ends: Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
    """The generations of consumers by UUID, and when their leases end, if they do."""

    generations: Mapping[str, int]
    expires_at: int | None


NOTHING = Written({}, None)


class Refused(errors.ConcurrentUpdate):
    """Nothing is written: the ground has moved, or some consumers have no room."""

    def __init__(self, consumers: Collection[str] = ()) -> None:
        super().__init__("The choice is no longer good.")
        self.consumers = frozenset(consumers)


class NoHostServes(errors.NoRoom):
    """There is no room for any consumer, for these ``reasons``."""

    def __init__(self, message: str, reasons: Report) -> None:
        super().__init__(message)
        self.reasons = reasons


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Placing:
    """A request for placements, and the ledger whose origin it is."""

    ledger: Ledger
    context: Context
    order: Order

    @property
    def beside(self) -> tuple[str, ...]:
        """The consumers of earlier requests to keep away from."""
        spread = self.order.wish.spread
        return spread.beside if spread else ()


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """A request, and the choices for it: ``placed`` has those of its consumers."""

    asked: Placing
    chosen: Chosen
    placed: Mapping[str, Choice]

    def count(self, scene: Scene) -> int:
        """Return how many consumers are placed, or were already."""
        return len(self.placed) + len(
            scene.existing.keys() & self.asked.order.consumers
        )

    def claims(self) -> list[Claim]:
        """Return the claims of the consumers that have been placed."""
        order = self.asked.order
        owner = (order.project_id, order.user_id, order.consumer_type)
        return [
            Claim(WantedConsumer(uuid, *owner), self.placed[uuid].amounts)
            for uuid in order.consumers
            if uuid in self.placed
        ]

    def told(self, scene: Scene, written: Written = NOTHING) -> Placements:
        """Return the outcome of the request."""
        placements, unplaced = [], []
        for uuid in self.asked.order.consumers:
            if uuid in scene.existing:
                placements.append(_existing(uuid, scene))
            elif uuid in self.placed:
                placements.append(_placed(uuid, self.placed[uuid], written))
            else:
                unplaced.append(uuid)
        return Placements(
            tuple(placements),
            tuple(unplaced),
            self.chosen.considered,
            self.chosen.exact,
            self.asked.order.dry_run,
        )


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
        # Each of the threads raises an error of its own.
        raise errors.DatabaseUnavailable(str(done)) from done.__cause__
    return done or _run_alone(request)


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
        and not (wish.spread or wish.together or wish.prefer)
        and not order.lease_seconds
        and not order.dry_run
    )


def _run(asked: Sequence[Placing]) -> Sequence[_Outcome]:
    """Carry out some requests."""
    if len(asked) == 1:
        return [_run_alone(asked[0])]
    try:
        return _run_together(asked)
    except errors.DatabaseUnavailable as exc:
        cause = exc.__cause__
        if not (isinstance(cause, Exception) and trouble.is_busy(cause)):
            # Each request would wait again, and the transaction may be committed.
            return [exc] * len(asked)
        # A lock that one of the requests needs is held for long.
    except errors.ServiceError:
        # Others were faster, or one of the requests cannot be looked up or stored.
        pass
    return [None] * len(asked)


def _run_together(asked: Sequence[Placing]) -> Sequence[Placements | None]:
    """Write all that can be placed in one transaction, which is tried once.

    Requests that fail are left out, and those for a consumer of an earlier one.

    :raises ServiceError: nothing is written
    """
    scene = asked[0].ledger.read(lambda connection: load(connection, asked))
    parts: dict[Placing, _Part] = {}
    placed: dict[str, Choice] = {}
    for each in asked:
        # A request that fails here fails again when it runs alone.
        with contextlib.suppress(errors.ServiceError):
            if placed.keys().isdisjoint(each.order.consumers):
                part = _choose(each, scene, {}, placed.values())
                if part.count(scene) >= each.order.at_least:
                    parts[each] = part
                    placed |= part.placed
    written = NOTHING
    if placed:
        work = functools.partial(write, parts=list(parts.values()), scene=scene)
        written = asked[0].ledger.write(work, attempts=1)
    return [
        parts[each].told(scene, written) if each in parts else None for each in asked
    ]


def _run_alone(asked: Placing) -> Placements:
    """Choose and write, again and again if other requests are faster."""
    good: Mapping[str, Choice] = {}
    deadline = time.monotonic() + storage.PATIENCE
    while time.monotonic() < deadline:
        try:
            scene = asked.ledger.read(lambda connection: load(connection, [asked]))
        except errors.ConcurrentUpdate:
            # A lost race does not show whether there is room.
            continue
        part = _choose(asked, scene, good)
        _check_enough(part, scene)
        if asked.order.dry_run or not part.placed:
            return part.told(scene)
        try:
            written = asked.ledger.write(
                functools.partial(write, parts=[part], scene=scene)
            )
            return part.told(scene, written)
        except errors.ConcurrentUpdate as exc:
            # The choices that were not refused are kept for the next attempt.
            refused = exc.consumers if isinstance(exc, Refused) else ()
            good = {key: part.placed[key] for key in part.placed if key not in refused}
    raise errors.Busy(TAKEN)


@telemetry.timed("search")
def _choose(
    asked: Placing,
    scene: Scene,
    good: Mapping[str, Choice],
    taken: Iterable[Choice] = (),
) -> _Part:
    """Choose for all consumers of a request that are still to be placed.

    :param good: choices of an earlier attempt, to keep if all fit with them
    :param taken: choices for other requests
    :raises ConcurrentUpdate: a consumer exists with another owner or type
    """
    order, existing = asked.order, scene.existing
    owner = Ownership(order.project_id, order.user_id, order.consumer_type)
    for uuid in order.consumers:
        if uuid in existing and existing[uuid].owner != owner:
            raise errors.ConcurrentUpdate(
                f"Consumer {uuid} has allocations already, and another project, user "
                "or type."
            )
    waiting = [uuid for uuid in order.consumers if uuid not in existing]
    waiting.sort(key=lambda uuid: uuid not in good)
    own = existing.keys() & order.consumers
    chosen = choosing.choose(
        scene.forest,
        order.wish,
        len(waiting),
        Present(
            {uuid: tuple(existing[uuid].amounts) for uuid in own},
            {uuid: tuple(existing[uuid].amounts) for uuid in existing.keys() - own},
        ),
        asked.context.candidates.limits,
        kept=[good[uuid] for uuid in waiting if uuid in good],
        taken=taken,
    )
    return _Part(asked, chosen, dict(zip(waiting, chosen.choices, strict=False)))


def _check_enough(part: _Part, scene: Scene) -> None:
    """Check that enough consumers can be placed.

    :raises NoRoom: too few can be placed
    :raises SearchExhausted: the search ended before that was clear
    """
    order, could = part.asked.order, part.count(scene)
    if could >= order.at_least:
        return
    if part.chosen.exhausted:
        raise errors.SearchExhausted(
            f"It is not known whether {order.at_least} consumers can be placed: the "
            "search was ended before it had looked at all combinations. "
            f"{could} could be."
        )
    detail = (
        f"{order.at_least} of {len(order.consumers)} consumers must be placed, and "
        f"{could} could be."
    )
    if not part.chosen.exact:
        detail += " Another choice of hosts might have room for more."
    reasons = None
    if not could:
        # While too many explanations are in progress, there is none.
        with (
            contextlib.suppress(errors.Busy),
            part.asked.context.explaining.turn(
                "Too many explanations are in progress."
            ),
        ):
            reasons = _explain(part.asked)
    if reasons:
        raise NoHostServes(detail, reasons)
    raise errors.NoRoom(detail)


def _explain(asked: Placing) -> Report:
    """Return why nothing fits. No lock is held any more: it may take a second."""
    kept = asked.context.forest_cache
    forest = asked.ledger.read(lambda connection: cache.load(connection, kept))
    query = ExplanationQuery(asked.order.wish.request, seconds=EXPLAIN)
    return explanation.explain(forest, query)


def load(connection: Connection, asked: Sequence[Placing]) -> Scene:
    """Return the cloud, and the consumers of some requests to one database.

    :raises NoLeases: a lease is wanted, and there is no table for it
    """
    orders = [each.order for each in asked]
    if any(order.lease_seconds is not None for order in orders):
        # A dry run writes nothing, so no later check would find this.
        lease.check_kept(connection)
    own = {uuid for order in orders for uuid in order.consumers}
    uuids = own.union(*(each.beside for each in asked))
    # The forest comes first: its read decides which moment the transaction sees.
    forest = cache.load(connection, asked[0].context.forest_cache)
    existing = allocation.list_by_consumers(connection, uuids)
    ends = _load_ends(connection, own & existing.keys()) if existing else {}
    standings = {uuid: _standing(allocations) for uuid, allocations in existing.items()}
    return Scene(forest, standings, ends)


def write(tx: Transaction, parts: Sequence[_Part], scene: Scene) -> Written:
    """Write the choices for some requests.

    :raises Refused: the scene has changed, or there is no longer room for each claim
    :raises NoLeases: a lease is wanted, and there is no table for it
    :raises Conflict: the database considers two different names equal
    """
    # The journal names the request behind each change.
    tx.origins = {
        uuid: each.asked.ledger.origin for each in parts for uuid in each.placed
    }
    seconds = parts[0].asked.order.lease_seconds
    if seconds is not None:
        lease.check_kept(tx.connection)
    claims = [claim for each in parts for claim in each.claims()]
    placed = {claim.consumer.uuid for claim in claims}
    held = _lock(tx, claims, parts, scene)
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
    if seconds is not None:
        ids = locking.load_consumer_ids(tx.connection, placed)
        end = lease.replace(tx, {key: uuid for uuid, key in ids.items()}, seconds)
    before = {uuid: record.generation for uuid, record in held.consumers.items()}
    return Written({uuid: before.get(uuid, 0) + 1 for uuid in placed}, end)


def _lock(
    tx: Transaction, claims: Iterable[Claim], parts: Sequence[_Part], scene: Scene
) -> Held:
    """Lock what claims touch, and the domains that must not get other consumers.

    :raises Refused: consumers are not as they were when the choice was made
    """
    beside = {uuid for each in parts for uuid in each.asked.beside}
    consumers = beside.union(*(each.asked.order.consumers for each in parts))
    roots, aggregates = set[str](), set[str]()
    for each in parts:
        spread = each.asked.order.wish.spread
        if spread and spread.beside:
            domains = roots if spread.domains.aggregates is None else aggregates
            for choice in each.placed.values():
                domains.update(domains_of(choice.host, spread.domains))
    names = locking.look_up(tx.connection, claims, consumers=consumers, providers=roots)
    held = locking.hold(tx, names)
    if aggregates:
        aggregate.lock(tx, sorted(aggregates))
    before = {uuid: scene.existing[uuid] for uuid in consumers & scene.existing.keys()}
    if _standings(held) != before:
        raise Refused
    if beside:
        # Another request may have created a consumer during the wait for locks.
        ids = locking.load_consumer_ids(tx.connection, beside)
        if not ids.keys() <= held.consumers.keys():
            raise Refused
    return held


def _standings(held: Held) -> dict[str, Standing]:
    """Return the state of locked consumers that have allocations."""
    using = replacing.amounts_of(held.rows)
    return {
        uuid: Standing(record.generation, record.owner, using[uuid])
        for uuid, record in held.consumers.items()
        if uuid in using
    }


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
    standing = scene.existing[uuid]
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

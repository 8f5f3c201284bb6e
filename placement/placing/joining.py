"""Requests for placements that arrive together are written in one transaction.

Most of the work for one consumer is the transaction, which costs hardly more for
several: so the next requests gather while a transaction is under way.
"""

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from placement import errors, measure
from placement.objects import placing as stored
from placement.objects.ledger import Ledger
from placement.objects.placing import Ground, Written
from placement.objects.transaction import Transaction
from placement.operation import Context
from placement.placing import placing
from placement.placing.placing import Placing, Scene
from placement.questions.placing import choosing
from placement.questions.placing.choosing import Chosen
from placement.questions.placing.filling import Choice
from placement.questions.placing.order import Order, Placements
from placement_foundation.database import trouble
from placement_foundation.observing import telemetry

# A request for more consumers is worth a transaction of its own.
MOST_CONSUMERS = 10

# The outcome of a request; None means that the request has to run by itself.
_Outcome: TypeAlias = Placements | errors.DatabaseUnavailable | None


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
    request = Placing(ledger, context, order)
    with _counted() as result:
        done: _Outcome = None
        if _may_join(context, order):
            done = context.placings.do(request, _run)
        if isinstance(done, errors.DatabaseUnavailable):
            raise done
        done = done or request.run()
        result.append(_result_of(done))
        return done


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
    scene = ledger.read(lambda connection: placing.load(connection, asked))
    with telemetry.step("search"):
        parts = _choose(scene, asked)
    if not parts:
        return [None] * len(asked)
    claims = [claim for each in parts for claim in each.asked.claims(each.placed)]
    consumers = tuple(claim.consumer.uuid for claim in claims)
    # The journal names the request behind each change.
    origins = {uuid: each.asked.ledger.origin for each in parts for uuid in each.placed}
    ground = Ground(consumers, (), {}, frozenset(), frozenset())

    def write(tx: Transaction) -> Written:
        tx.origins = origins
        return stored.write(tx, claims, ground, None)

    written = ledger.write(write, attempts=1)
    done = {
        each.asked: each.asked.told(scene, each.chosen, each.placed, written)
        for each in parts
    }
    return [done.get(each) for each in asked]


def _choose(scene: Scene, asked: Sequence[Placing]) -> Sequence[_Part]:
    """Choose for one request after the other; leave out requests that fail."""
    parts: list[_Part] = []
    series = choosing.Series(scene.forest, asked[0].limits)
    served: set[str] = set()
    for each in asked:
        consumers = each.order.consumers
        chosen = None
        # A request that fails here fails again when it runs alone.
        with contextlib.suppress(errors.ServiceError):
            if served.isdisjoint(consumers):
                chosen = each.choose_beside(scene, series)
        if chosen:
            served.update(consumers)
            placed = dict(zip(consumers, chosen.choices, strict=True))
            parts.append(_Part(each, chosen, placed))
    return parts


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

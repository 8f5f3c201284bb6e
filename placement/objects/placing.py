"""Placements: consumers that are written together, where there is room for all."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from placement import errors
from placement.model.allocation import Claim, provider_uuids
from placement.model.entry import Ownership
from placement.objects import (
    aggregate,
    claim,
    consumer,
    lease,
    locking,
    replacing,
)
from placement.objects.locking import Held
from placement.objects.transaction import Transaction


@dataclasses.dataclass(frozen=True, slots=True)
class Ground:
    """The facts behind a choice, which must still hold when it is written.

    ``present`` are the consumers of the request and others beside them that have
    allocations, by UUID. ``locked_roots`` and ``locked_aggregates`` are the UUIDs of
    roots and aggregates that must not get other consumers meanwhile.
    """

    consumers: tuple[str, ...]
    beside: tuple[str, ...]
    present: Mapping[str, "Standing"]
    locked_roots: frozenset[str]
    locked_aggregates: frozenset[str]


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


def write(
    tx: Transaction,
    claims: Collection[Claim],
    ground: Ground,
    lease_seconds: int | None,
) -> Written:
    """Write all claims.

    :raises Refused: there is no longer room for each claim
    :raises NoLeases: a lease is wanted, and there is no table for it
    :raises Conflict: the database considers two different names equal
    """
    if lease_seconds is not None:
        lease.check_kept(tx.connection)
    names = locking.look_up(tx.connection, claims)
    placed = {each.consumer.uuid for each in claims}
    others = {*ground.consumers, *ground.beside} - placed
    held = locking.hold(
        tx,
        others | names.consumers,
        provider_uuids(claims),
        ids=names.provider_ids,
        beside=ground.locked_roots,
    )
    aggregate.lock(tx, sorted(ground.locked_aggregates))
    if not _stands(tx.connection, ground, held):
        raise Refused
    own = dataclasses.replace(
        held, rows=[row for row in held.rows if row.consumer_uuid in placed]
    )
    inventories = claim.load_inventories(
        tx.connection, own.providers.values(), names.class_ids
    )
    refused = claim.list_refused(claims, inventories, locking.sum_up(own.rows))
    if refused:
        raise Refused([each.consumer.uuid for each, _ in refused])
    wanted = [each.consumer for each in claims]
    new = consumer.store(tx, wanted, own.consumers, names.owners)
    replacing.write_held(tx, claims, names, own, new)
    end = None
    if lease_seconds is not None:
        ids = consumer.load_ids(tx.connection, placed)
        consumers = {key: uuid for uuid, key in ids.items()}
        end = lease.replace(tx, consumers, lease_seconds)
    return Written({uuid: _next(own, uuid) for uuid in placed}, end)


def _stands(connection: sa.Connection, ground: Ground, held: Held) -> bool:
    """Return whether the consumers are as they were when the choice was made."""
    using = locking.amounts_of(held.rows)
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
    generations = consumer.load_generations(connection, ground.beside)
    return generations.keys() <= held.consumers.keys()


def _next(held: Held, uuid: str) -> int:
    record = held.consumers.get(uuid)
    return record.generation + 1 if record else 1


def load_ends(connection: sa.Connection, uuids: Sequence[str]) -> dict[str, int]:
    """Return when the leases of some consumers end, by UUID, without locking them."""
    ids = consumer.load_ids(connection, uuids)
    ends = lease.load(connection, ids.values())
    return {uuid: ends[key] for uuid, key in ids.items() if key in ends}

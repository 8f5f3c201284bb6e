"""Placements: consumers that are written together, where there is room for all."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from placement import errors
from placement.model.allocation import Claim
from placement.model.entry import Ownership
from placement.objects import aggregate, lease, locking, replacing
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
    replacing.write_held(tx, own, replacing.store_consumers(tx, own))
    end = None
    if lease_seconds is not None:
        ids = locking.load_consumer_ids(tx.connection, placed)
        consumers = {key: uuid for uuid, key in ids.items()}
        end = lease.replace(tx, consumers, lease_seconds)
    return Written({uuid: _next(own, uuid) for uuid in placed}, end)


def _stands(connection: sa.Connection, ground: Ground, held: Held) -> bool:
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


def _next(held: Held, uuid: str) -> int:
    record = held.consumers.get(uuid)
    return record.generation + 1 if record else 1


def load_ends(connection: sa.Connection, uuids: Sequence[str]) -> dict[str, int]:
    """Return when the leases of some consumers end, by UUID, without locking them."""
    ids = locking.load_consumer_ids(connection, uuids)
    ends = lease.load(connection, ids.values())
    return {uuid: ends[key] for uuid, key in ids.items() if key in ends}

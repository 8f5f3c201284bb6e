"""Placements: consumers that are written together, where there is room for all."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from placement.model.allocation import Claim, provider_uuids
from placement.objects import aggregate, allocation, claim, consumer, lease
from placement.objects.allocation import Held


@dataclasses.dataclass(frozen=True, slots=True)
class Ground:
    """What a choice was made from, and must still be so when it is written.

    ``generations`` are those of the consumers of the request and of others beside them
    that have allocations. ``locks`` are the UUIDs of the roots and of the aggregates
    that must not get other consumers meanwhile.
    """

    consumers: tuple[str, ...]
    beside: tuple[str, ...]
    generations: Mapping[str, int]
    locked_roots: frozenset[str]
    locked_aggregates: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
    """The generations of consumers by UUID, and when their leases end, if they do."""

    generations: Mapping[str, int]
    expires_at: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was written: the ground has moved, or some consumers have no room."""

    consumers: frozenset[str]


def write(
    connection: sa.Connection,
    claims: Collection[Claim],
    ground: Ground,
    lease_seconds: int | None,
) -> Written | Refused:
    """Write all claims, or none if there is no longer room for each of them.

    :raises NoLeases: a lease is wanted, and there is no table for it
    :raises Conflict: the database considers two different names equal
    """
    if lease_seconds is not None:
        lease.check_kept(connection)
    names = allocation.look_up(connection, claims)
    placed = {each.consumer.uuid for each in claims}
    others = {*ground.consumers, *ground.beside} - placed
    providers = {*provider_uuids(claims), *ground.locked_roots}
    held = allocation.hold(
        connection,
        others | names.consumers,
        sorted(providers),
        ids=names.provider_ids,
    )
    aggregate.lock(connection, sorted(ground.locked_aggregates))
    if not _stands(connection, ground, held):
        return Refused(frozenset())
    own = dataclasses.replace(
        held, rows=[row for row in held.rows if row.consumer_uuid in placed]
    )
    stocks = claim.load_stocks(connection, own.providers.values(), names.class_ids)
    refused = claim.list_refused(claims, stocks, allocation.sum_up(own.rows))
    if refused:
        return Refused(frozenset(each.consumer.uuid for each in refused))
    wanted = [each.consumer for each in claims]
    new = consumer.store(connection, wanted, own.consumers, names.owners)
    allocation.write_held(connection, claims, names, own, new)
    end = None
    if lease_seconds is not None:
        ids = consumer.load_ids(connection, placed)
        consumers = {key: uuid for uuid, key in ids.items()}
        end = lease.replace(connection, consumers, lease_seconds)
    return Written({uuid: _next(own, uuid) for uuid in placed}, end)


def _stands(connection: sa.Connection, ground: Ground, held: Held) -> bool:
    """Return whether the consumers have what they had when the choice was made."""
    using = {row.consumer_uuid for row in held.rows}
    now = {
        uuid: record.generation
        for uuid, record in held.consumers.items()
        if uuid in using
    }
    if now != ground.generations:
        return False
    if not ground.beside:
        return True
    # Another request may have created one of them while this one waited for its locks.
    known = consumer.load_generations(connection, ground.beside)
    return known.keys() <= held.consumers.keys()


def _next(held: Held, uuid: str) -> int:
    record = held.consumers.get(uuid)
    return record.generation + 1 if record else 1


def load_ends(connection: sa.Connection, uuids: Sequence[str]) -> dict[str, int]:
    """Return when the leases of some consumers end, by UUID, without locking them."""
    ids = consumer.load_ids(connection, uuids)
    ends = lease.load(connection, ids.values())
    return {uuid: ends[key] for uuid, key in ids.items() if key in ends}

"""Replacing and deleting the allocations of consumers, under locks."""

import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.model import entry
from placement.model.allocation import (
    Claim,
    Place,
    class_names,
    provider_uuids,
)
from placement.model.entry import Entry, Ownership
from placement.model.inventory import Inventory, InventoryUsage
from placement.objects import (
    claim,
    consumer,
    locking,
    resource_class,
    resource_provider,
)
from placement.objects.locking import ClaimNames, Held, Row
from placement.objects.resource_provider import Locked
from placement.objects.transaction import Transaction
from placement_foundation.database import storage

STORED: Mapping[Place, Inventory] = types.MappingProxyType({})
_INSERT = sa.insert(models.Allocation).inline()


def replace_all(tx: Transaction, claims: Collection[Claim], *, attempts: int) -> None:
    """Replace all allocations of the consumers of the claims.

    :param attempts: how many attempts the configuration allows while others change the
        same providers. They have to wait for our locks, so the first attempt never
        fails for that reason: only 0 makes a difference.
    :raises ConcurrentUpdate: a consumer does not have the expected generation, or
        no attempt is allowed
    :raises BadRequest: there is no such provider
    :raises NotFound: there is no such resource class
    :raises Conflict: an amount does not fit
    """
    consumers = [each.consumer for each in claims]
    names = locking.look_up(tx.connection, claims)
    held = locking.hold(
        tx,
        names.consumers,
        provider_uuids(claims),
        ids=names.provider_ids,
    )
    consumer.check_generations(consumers, held.consumers)
    locking.check_providers(claims, held)
    try:
        check_attempts(attempts)
        replace_held(tx, claims, names, held)
    except errors.ConcurrentUpdate as exc:
        raise errors.ConcurrentUpdate(
            f"Inventory and/or allocations changed while attempting to allocate: {exc}"
        ) from exc


def check_attempts(attempts: int) -> None:
    """Refuse a write that has no attempts, as if it had lost a race.

    :raises ConcurrentUpdate: the number of attempts is below 1
    """
    if attempts < 1:
        raise errors.ConcurrentUpdate(resource_provider.RACE)


def replace_held(
    tx: Transaction,
    claims: Collection[Claim],
    names: ClaimNames,
    held: Held,
    inventories: Mapping[Place, Inventory] = STORED,
) -> dict[str, Locked]:
    """Do the work of ``replace_all``, under its locks and after its checks.

    :param inventories: inventories to use instead of the stored ones
    :return: the locked providers by UUID, with the generations they have now
    :raises NotFound: there is no such resource class
    :raises Conflict: an amount does not fit
    """
    class_ids = names.class_ids
    resource_class.check_known(class_names(claims), class_ids)
    staying = [each for each in claims if each.amounts]
    consumers = [each.consumer for each in staying]
    new = consumer.store(tx, consumers, held.consumers, names.owners)
    usages = claim.load_inventories(tx.connection, held.providers.values(), class_ids)
    for (uuid, name), inventory in inventories.items():
        if name in class_ids:
            old = usages.get((uuid, name))
            usages[uuid, name] = InventoryUsage.of(inventory, old.used if old else 0)
    try:
        claim.check_room(staying, usages, locking.sum_up(held.rows))
    except errors.Conflict:
        # The loser of a race to create the same consumer gets an error about the race,
        # not about room that the winner has taken.
        consumer.insert(tx, new)
        raise
    return write_held(tx, claims, names, held, new)


def write_held(
    tx: Transaction,
    claims: Collection[Claim],
    names: ClaimNames,
    held: Held,
    new: Sequence[Mapping[str, Any]],
) -> dict[str, Locked]:
    """Write claims that fit.

    :param new: the rows of new consumers
    :return: the locked providers by UUID, with the generations they have now
    """
    staying = [each for each in claims if each.amounts]
    _delete(tx, held.rows)
    consumer.insert(tx, new)
    rows = _rows_of(staying, held, names.class_ids)
    if rows:
        tx.execute(_INSERT, rows)
    consumer.remove(tx, _leaving(claims, held))
    return _record_change(tx, claims, held)


def delete_all(tx: Transaction, consumer_uuid: str) -> None:
    """Remove a consumer and its allocations. No generation changes.

    :raises NotFound: the consumer has no allocations
    """
    held = locking.hold(tx, [consumer_uuid])
    # Allocations of a consumer without a record are not shown, so not deleted either.
    if not held.rows or not held.consumers:
        raise errors.NotFound(f"No allocations for consumer '{consumer_uuid}'")
    delete_held(tx, held)


def delete_held(tx: Transaction, held: Held) -> None:
    """Remove locked consumers and their allocations. No generation changes."""
    _delete(tx, held.rows)
    consumer.remove(tx, held.consumers.values())
    before, places = locking.amounts_of(held.rows), _places(held)
    entries: list[Entry] = []
    for uuid, record in held.consumers.items():
        entries += entry.of_allocations(
            uuid,
            before.get(uuid, {}),
            {},
            places=places,
            owner=record.owner,
            generation=None,
        )
    resource_provider.record_change(tx, held.providers.values(), entries, bump=False)


def _delete(tx: Transaction, rows: Iterable[Row]) -> None:
    uuids = sorted({row.consumer_uuid for row in rows})
    storage.delete_each(tx.connection, models.Allocation.consumer_id, uuids)


def _rows_of(
    claims: Iterable[Claim], held: Held, class_ids: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Return the rows of allocations for claims."""
    return [
        {
            "resource_provider_id": held.providers[uuid].id,
            "consumer_id": each.consumer.uuid,
            "resource_class_id": class_ids[name],
            "used": amount,
        }
        for each in claims
        for uuid, amounts in each.amounts.items()
        for name, amount in amounts.items()
    ]


def _leaving(claims: Iterable[Claim], held: Held) -> list[consumer.Record]:
    """Return the existing consumers that are to have no allocations."""
    emptied = [each.consumer.uuid for each in claims if not each.amounts]
    return [held.consumers[uuid] for uuid in emptied if uuid in held.consumers]


def _record_change(
    tx: Transaction, claims: Collection[Claim], held: Held
) -> dict[str, Locked]:
    """Record which providers have changed; return the locked ones as they are now.

    Providers named in a claim get a new generation, and so do those of consumers that
    are removed; providers that a consumer has merely moved away from do not.
    """
    entries = _entries(claims, held)
    leaving = {each.consumer.uuid for each in claims if not each.amounts}
    left = {row.provider_uuid for row in held.rows if row.consumer_uuid in leaving}
    changed = left.union(provider_uuids(claims))
    quiet = {row.provider_uuid for row in held.rows} - changed
    resource_provider.record_change(tx, _pick(held.providers, quiet), [], bump=False)
    bumped = resource_provider.bump(tx, _pick(held.providers, changed), entries)
    return {**held.providers, **bumped}


def _entries(claims: Iterable[Claim], held: Held) -> list[Entry]:
    """Return the journal entries for the changes of claims."""
    entries: list[Entry] = []
    before, places = locking.amounts_of(held.rows), _places(held)
    for each in claims:
        uuid, generation = each.consumer.uuid, None
        record = held.consumers.get(uuid)
        owner = record.owner if record else Ownership()
        if each.amounts:
            generation = record.generation + 1 if record else 1
            after = consumer.owner_after(each.consumer, record)
            if record:
                entries += entry.of_consumer(uuid, owner, after, generation)
            owner = after
        entries += entry.of_allocations(
            uuid,
            before.get(uuid, {}),
            each.amounts,
            places=places,
            owner=owner,
            generation=generation,
        )
    return entries


def _places(held: Held) -> dict[str, tuple[str, str]]:
    """Return the name and the root of each provider, by UUID."""
    return {
        uuid: (provider.name, provider.root_uuid)
        for uuid, provider in held.providers.items()
    }


def _pick(providers: Mapping[str, Locked], uuids: Collection[str]) -> list[Locked]:
    return [provider for uuid, provider in providers.items() if uuid in uuids]

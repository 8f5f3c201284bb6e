"""Replacing and deleting the allocations of consumers, under locks."""

import collections
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exc
from sqlalchemy import orm

from placement import errors
from placement.db import models
from placement.model import entry
from placement.model.allocation import Claim, Place
from placement.model.consumer import WantedConsumer
from placement.model.entry import Entry, Ownership
from placement.model.inventory import Inventory, InventoryUsage
from placement.model.resource_provider import ResourceProvider
from placement.objects import (
    exact_match,
    lease,
    locking,
    resource_class,
    resource_provider,
)
from placement.objects.locking import Held, Record, Row
from placement.objects.transaction import Transaction
from placement_foundation.database import storage

RACE = "Another thread concurrently updated the data. Please retry your update"
_INSERT = sa.insert(models.Allocation).inline()
_INSERT_CONSUMERS = sa.insert(models.Consumer).inline()
_UPDATE_CONSUMER = sa.update(models.Consumer).where(
    models.Consumer.id == sa.bindparam("changed_id")
)


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
    held = locking.hold(tx, locking.look_up(tx.connection, claims))
    check_claims(held)
    try:
        check_attempts(attempts)
        replace_held(tx, held, {})
    except errors.ConcurrentUpdate as exc:
        raise errors.ConcurrentUpdate(
            f"Inventory and/or allocations changed while attempting to allocate: {exc}"
        ) from exc


def check_claims(held: Held) -> None:
    """Check the generations of the consumers in claims, and that the providers exist.

    :raises ConcurrentUpdate: a generation differs; it names the first such
    :raises BadRequest: a provider does not exist; it names the first such
    """
    for claim in held.names.claims:
        wanted, record = claim.consumer, held.consumers.get(claim.consumer.uuid)
        actual = record.generation if record else None
        if wanted.guarded and wanted.generation != actual:
            expected = "null" if actual is None else actual
            raise errors.ConcurrentUpdate(
                "consumer generation conflict - "
                f"expected {expected} but got {wanted.generation}"
            )
    for uuid in held.names.provider_uuids:
        if uuid not in held.providers:
            raise errors.BadRequest(
                f"Allocation for resource provider '{uuid}' that does not exist."
            )


def check_attempts(attempts: int) -> None:
    """Refuse a write that has no attempts, as if it had lost a race.

    :raises ConcurrentUpdate: the number of attempts is below 1
    """
    if attempts < 1:
        raise errors.ConcurrentUpdate(resource_provider.RACE)


def replace_held(
    tx: Transaction, held: Held, coming: Mapping[Place, Inventory]
) -> None:
    """Do the work of ``replace_all``, under its locks and after its checks.

    :param coming: inventories to use instead of the stored ones
    :raises NotFound: there is no such resource class
    :raises Conflict: an amount does not fit
    """
    class_ids = held.names.class_ids
    if len(class_ids) < len(held.names.class_names):
        resource_class.check_known(held.names.class_names, class_ids)
    # The loser of a race to create a consumer gets an error about the race, not about
    # room that the winner has taken: so consumers are stored before room is checked.
    store_consumers(tx, held)
    usages = locking.load_inventories(tx.connection, held)
    for (uuid, name), inventory in coming.items():
        if name in class_ids:
            old = usages.get((uuid, name))
            usages[uuid, name] = InventoryUsage.of(inventory, old.used if old else 0)
    staying = [claim for claim in held.names.claims if claim.amounts]
    check_room(staying, usages, sum_up(held.rows))
    write_held(tx, held)


def check_room(
    claims: Collection[Claim],
    inventories: Mapping[Place, InventoryUsage],
    freed: Mapping[Place, int],
) -> None:
    """Check that each amount fits, given what others use and the claims before it.

    :param inventories: the inventories, with everything that is used of them
    :param freed: how much of that the consumers of the claims give back
    :raises Conflict: some providers have no inventory of a claimed class, or an amount
        does not fit; it names the first such
    """
    stocked = {uuid for uuid, _ in inventories}
    named = dict.fromkeys(uuid for claim in claims for uuid in claim.amounts)
    if not named.keys() <= stocked:
        amounts = [each for claim in claims for each in claim.amounts.values()]
        names = dict.fromkeys(name for each in amounts for name in each)
        raise _no_inventory(names, [uuid for uuid in named if uuid not in stocked])
    for _, fault in list_refused(claims, inventories, freed):
        raise fault


def list_refused(
    claims: Iterable[Claim],
    inventories: Mapping[Place, InventoryUsage],
    freed: Mapping[Place, int],
) -> list[tuple[Claim, errors.Conflict]]:
    """Return the claims that do not fit, each with the first fault.

    A claim that fits leaves less room for later ones. More may be used of an inventory
    than it has, if it has shrunk. A write is accepted then as long as the usage does
    not grow. The parameters are those of ``check_room``.
    """
    left = dict(inventories)
    for place in freed.keys() & left.keys():
        left[place] = left[place].with_more(-freed[place])
    refused = []
    for claim in claims:
        amounts = {
            (uuid, name): amount
            for uuid, resources in claim.amounts.items()
            for name, amount in resources.items()
        }
        try:
            for place, amount in amounts.items():
                room = left.get(place)
                if room is None:
                    raise _no_inventory([place[1]], [place[0]])
                if not room.suits(amount):
                    raise _refusal(place, "violate inventory constraints")
                used_before = inventories[place].used
                if not room.holds(amount) and room.used + amount > used_before:
                    raise _refusal(place, "exceed the capacity")
        except errors.Conflict as fault:
            refused.append((claim, fault))
        else:
            for place, amount in amounts.items():
                left[place] = left[place].with_more(amount)
    return refused


def _no_inventory(names: Iterable[str], uuids: Iterable[str]) -> errors.Conflict:
    return errors.Conflict(
        f"Unable to allocate inventory: Inventory for '{', '.join(names)}' on "
        f"resource provider '{', '.join(uuids)}' invalid."
    )


def _refusal(place: Place, what: str) -> errors.Conflict:
    uuid, name = place
    return errors.Conflict(
        f"Unable to allocate inventory: Unable to create allocation for '{name}' on "
        f"resource provider '{uuid}'. The requested amount would {what}."
    )


def store_consumers(tx: Transaction, held: Held) -> None:
    """Write the consumers that are to have allocations; each gets its next generation.

    If another request creates one of them, the race is lost.

    :raises ConcurrentUpdate: a consumer has changed in spite of its lock
    :raises Conflict: the database considers two different names equal
    """
    wanted = [claim.consumer for claim in held.names.claims if claim.amounts]
    projects, users, types = (
        _with_missing(tx, column, [getattr(each, field) for each in wanted], ids)
        for (column, field), ids in zip(locking.OWNER, held.names.owners, strict=True)
    )
    new, changed, old = [], [], []
    for each in wanted:
        record = held.consumers.get(each.uuid)
        type_id = record.type_id if record else None
        row = {
            "project_id": projects[each.project_id],
            "user_id": users[each.user_id],
            "consumer_type_id": type_id if each.type is None else types[each.type],
        }
        if record is None:
            new.append({"uuid": each.uuid, "generation": 1, **row})
            continue
        old.append((record.id, record.generation))
        if record.owner != _owner_after(each, record.owner):
            changed.append({"changed_id": record.id, **row})
    if changed:
        tx.connection.execute(_UPDATE_CONSUMER, changed)
    if old:
        resource_provider.increase_generations(tx, models.Consumer, old, RACE)
    _insert_consumers(tx, sorted(new, key=itemgetter("uuid")))


def _owner_after(wanted: WantedConsumer, owner: Ownership) -> Ownership:
    """Return the owner that a consumer has after a write, given the one before."""
    kind = owner.consumer_type if wanted.type is None else wanted.type
    return Ownership(wanted.project_id, wanted.user_id, kind)


def _with_missing(
    tx: Transaction,
    column: orm.InstrumentedAttribute[Any],
    names: Iterable[str | None],
    known: Mapping[str, int],
) -> Mapping[str, int]:
    """Return the ids of rows by name, inserting the rows that are missing.

    :raises BadRequest: some databases cannot store a name
    :raises Conflict: the database considers a name equal to another one
    """
    missing = sorted(name for name in {*names} - known.keys() if name is not None)
    if not missing:
        return known
    if not all(map(exact_match.is_searchable, missing)):
        raise errors.BadRequest("A project or user must not have a NUL in its name.")
    ids = exact_match.insert_missing(tx.connection, column, missing)
    for name in missing:
        if name not in ids:
            raise _indistinguishable(name)
    return {**known, **ids}


def _indistinguishable(name: str) -> errors.Conflict:
    return errors.Conflict(
        f"This database cannot distinguish '{name}' from another name that is in use."
    )


def _insert_consumers(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert consumers, in the state after their first write.

    :raises Conflict: the database considers two different UUIDs equal
    """
    if not rows:
        return
    try:
        tx.connection.execute(_INSERT_CONSUMERS, rows)
    except db_exc.DBDuplicateEntry:
        # Another request was faster, unless two UUIDs differ only in case.
        if tx.connection.dialect.name in ("mysql", "mariadb"):
            _check_distinct(tx.connection, [row["uuid"] for row in rows])
        raise


def _check_distinct(connection: sa.Connection, uuids: Sequence[str]) -> None:
    """Check that UUIDs differ in more than case, from each other and from stored ones.

    :raises Conflict: two differ in case only
    """
    row = models.Consumer
    spelled: dict[str, str] = {}
    for chunk in storage.chunks(uuids):
        stored = connection.scalars(sa.select(row.uuid).where(row.uuid.in_(chunk)))
        for uuid in [*stored, *chunk]:
            if spelled.setdefault(uuid.lower(), uuid) != uuid:
                raise _indistinguishable(uuid)


def write_held(tx: Transaction, held: Held) -> None:
    """Write claims that fit, of consumers that have been stored."""
    rows = [
        {
            "resource_provider_id": held.providers[uuid].id,
            "consumer_id": claim.consumer.uuid,
            "resource_class_id": held.names.class_ids[name],
            "used": amount,
        }
        for claim in held.names.claims
        for uuid, amounts in claim.amounts.items()
        for name, amount in amounts.items()
    ]
    if held.rows:
        _delete(tx, held.rows)
    if rows:
        tx.connection.execute(_INSERT, rows)
    leaving = {claim.consumer.uuid for claim in held.names.claims if not claim.amounts}
    if leaving:
        _remove(tx, [held.consumers[uuid] for uuid in leaving & held.consumers.keys()])
    _record_change(tx, held, leaving)


def sum_up(rows: Iterable[Row]) -> dict[Place, int]:
    """Return the amount that rows use of each inventory."""
    used: collections.Counter[Place] = collections.Counter()
    for row in rows:
        used[row.provider_uuid, row.class_name] += row.used
    return used


def amounts_of(rows: Iterable[Row]) -> dict[str, dict[str, dict[str, int]]]:
    """Return the amounts of rows, by consumer, provider and class."""
    amounts: dict[str, dict[str, dict[str, int]]] = {}
    for row in rows:
        of_consumer = amounts.setdefault(row.consumer_uuid, {})
        of_consumer.setdefault(row.provider_uuid, {})[row.class_name] = row.used
    return amounts


def delete_all(tx: Transaction, consumer_uuid: str) -> None:
    """Remove a consumer and its allocations. No generation changes.

    :raises NotFound: the consumer has no allocations
    """
    names = locking.look_up(tx.connection, consumers=[consumer_uuid])
    held = locking.hold(tx, names)
    # Allocations of a consumer without a record are not shown, so not deleted either.
    if not held.rows or not held.consumers:
        raise errors.NotFound(f"No allocations for consumer '{consumer_uuid}'")
    delete_held(tx, held)


def delete_held(tx: Transaction, held: Held) -> None:
    """Remove locked consumers and their allocations. No generation changes."""
    _delete(tx, held.rows)
    _remove(tx, held.consumers.values())
    before, places = amounts_of(held.rows), _places(held)
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


def _remove(tx: Transaction, records: Iterable[Record]) -> None:
    """Delete consumers that have no allocations left, and their leases."""
    ids = sorted(record.id for record in records)
    lease.remove(tx, ids)
    storage.delete_each(tx.connection, models.Consumer.id, ids)


def _record_change(tx: Transaction, held: Held, leaving: Collection[str]) -> None:
    """Record which providers have changed.

    Providers named in a claim get a new generation, and so do those of consumers that
    are removed; providers that a consumer has merely moved away from do not.
    """
    used = {row.provider_uuid for row in held.rows}
    left = {row.provider_uuid for row in held.rows if row.consumer_uuid in leaving}
    changed = left.union(held.names.provider_uuids)
    quiet = _pick(held.providers, used - changed)
    if quiet:
        resource_provider.record_change(tx, quiet, [], bump=False)
    bumped = _pick(held.providers, changed)
    resource_provider.record_change(tx, bumped, _entries(held), bump=True)


def _entries(held: Held) -> list[Entry]:
    """Return the journal entries for the changes of claims."""
    entries: list[Entry] = []
    before, places = amounts_of(held.rows), _places(held)
    for claim in held.names.claims:
        wanted, generation = claim.consumer, None
        record = held.consumers.get(wanted.uuid)
        owner = record.owner if record else Ownership()
        if claim.amounts:
            generation = record.generation + 1 if record else 1
            after = _owner_after(wanted, owner)
            if record:
                entries += entry.of_consumer(wanted.uuid, owner, after, generation)
            owner = after
        entries += entry.of_allocations(
            wanted.uuid,
            before.get(wanted.uuid, {}),
            claim.amounts,
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


def _pick(
    providers: Mapping[str, ResourceProvider], uuids: Collection[str]
) -> list[ResourceProvider]:
    return [provider for uuid, provider in providers.items() if uuid in uuids]

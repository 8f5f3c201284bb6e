"""Allocations: how much of which providers each consumer uses."""

import collections
import dataclasses
import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.model import entry
from placement.model.allocation import (
    Allocation,
    Allocations,
    Claim,
    Place,
    class_names,
    provider_uuids,
)
from placement.model.consumer import Consumer, WantedConsumer
from placement.model.entry import Entry, Ownership
from placement.model.inventory import Inventory, InventoryUsage
from placement.objects import (
    claim,
    consumer,
    exact_match,
    generation,
    resource_class,
    resource_provider,
)
from placement.objects.exact_match import WantedStrings
from placement.objects.resource_provider import Locked
from placement.objects.transaction import Transaction
from placement_foundation.clock import utc_now
from placement_foundation.database import storage

STORED: Mapping[Place, Inventory] = types.MappingProxyType({})


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A stored allocation of a consumer, which is locked if it has a record."""

    id: int
    consumer_uuid: str
    provider_uuid: str
    class_name: str
    used: int


@dataclasses.dataclass(frozen=True, slots=True)
class ClaimNames:
    """What is known about the names in claims, before anything is locked.

    ``consumers`` are those with a record or allocations. ``class_ids`` are keyed by
    name, and so are ``owners``, the ids of projects, users and types. ``provider_ids``
    are keyed by UUID, and only there if the database needs them to lock providers.
    """

    consumers: frozenset[str]
    class_ids: Mapping[str, int]
    provider_ids: Mapping[str, int]
    owners: Sequence[Mapping[str, int]]


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """What a write of allocations has locked, and the rows that it replaces.

    Consumers and providers are keyed by UUID; those that do not exist are left out.
    """

    consumers: Mapping[str, consumer.Record]
    providers: Mapping[str, Locked]
    rows: Sequence[Row]


_of_provider = models.ResourceProvider.id == models.Allocation.resource_provider_id
_of_class = models.ResourceClass.id == models.Allocation.resource_class_id
_of_record = models.Consumer.uuid == models.Allocation.consumer_id
_of_project = models.Project.id == models.Consumer.project_id
_of_user = models.User.id == models.Consumer.user_id
_of_type = models.ConsumerType.id == models.Consumer.consumer_type_id
_named = sa.join(models.Allocation, models.ResourceProvider, _of_provider).join(
    models.ResourceClass, _of_class
)
_ALLOCATION_ROWS = sa.select(
    models.Consumer.uuid,
    models.Project.external_id,
    models.User.external_id,
    models.ConsumerType.name,
    models.Consumer.generation,
    models.ResourceProvider.uuid.label("provider_uuid"),
    generation.stored(models.ResourceProvider).label("provider_generation"),
    models.ResourceClass.name.label("class_name"),
    models.Allocation.used,
    models.Allocation.created_at,
).order_by(models.Consumer.id, models.ResourceProvider.id, models.ResourceClass.id)
_ALLOCATIONS = (
    _ALLOCATION_ROWS.select_from(_named)
    .join(models.Consumer, _of_record)
    .join(models.Project, _of_project)
    .join(models.User, _of_user)
    .outerjoin(models.ConsumerType, _of_type)
)
_OF_CONSUMER = _ALLOCATIONS.where(models.Consumer.uuid == sa.bindparam("wanted"))
_OF_CONSUMERS = _ALLOCATIONS.where(
    models.Consumer.uuid.in_(sa.bindparam("consumers", expanding=True))
)
# A provider without allocations has one row, for its generation. Outer joins also keep
# MariaDB from beginning elsewhere: in a cloud that has grown since the server opened
# its tables it still takes them for empty, and would begin with the consumers of all
# projects.
_OF_PROVIDER = (
    _ALLOCATION_ROWS.select_from(models.ResourceProvider)
    .outerjoin(models.Allocation, _of_provider)
    .outerjoin(models.ResourceClass, _of_class)
    .outerjoin(models.Consumer, _of_record)
    .outerjoin(models.Project, _of_project)
    .outerjoin(models.User, _of_user)
    .outerjoin(models.ConsumerType, _of_type)
    .where(
        models.ResourceProvider.uuid == sa.bindparam("wanted"),
        resource_provider.HAS_ROOT,
    )
)
# The columns of a ``Row``, after the id of the consumer's record.
_ROWS = (
    sa.select(
        models.Consumer.id,
        models.Allocation.id,
        models.Allocation.consumer_id,
        models.ResourceProvider.uuid,
        models.ResourceClass.name,
        models.Allocation.used,
    )
    .select_from(_named)
    .outerjoin(models.Consumer, _of_record)
    .where(models.Allocation.consumer_id.in_(sa.bindparam("consumers", expanding=True)))
    .order_by(models.Allocation.id)
)
_IDS = sa.select(models.Allocation.id)
_INSERT = sa.insert(models.Allocation).inline()


def list_by_consumer(connection: sa.Connection, uuid: str) -> Allocations:
    """Return what a consumer uses, in the order of provider and class ids."""
    return _allocations_of(_list_exactly(connection, _OF_CONSUMER, "uuid", uuid))


def list_by_consumers(
    connection: sa.Connection, uuids: Collection[str]
) -> dict[str, list[Allocation]]:
    """Return what consumers use, by UUID; those that use nothing are left out."""
    found: dict[str, list[Allocation]] = {}
    wanted = {uuid for uuid in uuids if exact_match.is_searchable(uuid)}
    for chunk in storage.chunks(sorted(wanted)):
        rows = connection.execute(_OF_CONSUMERS, {"consumers": chunk}).all()
        for each in _allocations_of(rows).allocations:
            if each.consumer.uuid in wanted:
                found.setdefault(each.consumer.uuid, []).append(each)
    return found


def list_by_provider(
    connection: sa.Connection, uuid: str
) -> tuple[int | None, Allocations]:
    """Return the generation of a provider, and the allocations against it.

    They are ordered by consumer and class id. The generation is None, and there are no
    allocations, if there is no such provider.
    """
    rows = _list_exactly(connection, _OF_PROVIDER, "provider_uuid", uuid)
    # Without a consumer, or without any of their names, they are not part of the API.
    found = [row for row in rows if None not in (*row[:3], row.class_name)]
    known = rows[0].provider_generation if rows else None
    return known, _allocations_of(found)


def _list_exactly(
    connection: sa.Connection,
    query: sa.Select[*tuple[Any, ...]],
    column: str,
    uuid: str,
) -> Sequence[Any]:
    """Return what a query for a ``wanted`` UUID finds, if it is the one in a column."""
    if not exact_match.is_searchable(uuid):
        return []
    rows = connection.execute(query, {"wanted": uuid})
    # MariaDB also finds UUIDs that differ in case.
    return [row for row in rows if getattr(row, column) == uuid]


def look_up(connection: sa.Connection, claims: Collection[Claim]) -> ClaimNames:
    """Return what is known about the names in claims, with one statement."""
    looks_up_providers = connection.dialect.name in ("mysql", "mariadb")
    return load_names(
        connection,
        {each.consumer.uuid for each in claims},
        class_names(claims),
        [each.consumer for each in claims if each.amounts],
        provider_uuids(claims) if looks_up_providers else (),
    )


def load_names(
    connection: sa.Connection,
    consumers: Collection[str],
    classes: Collection[str],
    wanted: Sequence[WantedConsumer],
    providers: Collection[str] = (),
) -> ClaimNames:
    """Return what is known about some names, with one statement.

    Of the consumers, only the result that one does not exist can be relied on: creating
    one that another request is creating, too, is a lost race.

    :param consumers: UUIDs
    :param wanted: consumers whose owners are to be found
    :param providers: UUIDs
    """
    recorded, using, class_ids, provider_ids, *owners = exact_match.ids_of_all(
        connection,
        [
            WantedStrings(models.Consumer.id, models.Consumer.uuid, consumers),
            WantedStrings(
                models.Allocation.id, models.Allocation.consumer_id, consumers
            ),
            WantedStrings(models.ResourceClass.id, models.ResourceClass.name, classes),
            WantedStrings(
                models.ResourceProvider.id, models.ResourceProvider.uuid, providers
            ),
            *consumer.list_owner_names(wanted),
        ],
    )
    return ClaimNames(frozenset({*recorded, *using}), class_ids, provider_ids, owners)


def hold(
    tx: Transaction,
    consumers: Collection[str],
    providers: Iterable[str] = (),
    *,
    ids: Mapping[str, int] = exact_match.NONE,
    beside: Collection[str] = (),
) -> Held:
    """Lock everything that a write of allocations touches.

    All transactions take these locks in the same order: consumers, then providers, each
    by id. With these locks a transaction knows what is used, and that no other one
    changes it.

    :param consumers: the UUIDs of the consumers whose allocations are replaced
    :param providers: the UUIDs of the providers that they are to use
    :param ids: the ids that are known of providers, by UUID
    :param beside: the UUIDs of other providers to lock
    """
    records = consumer.lock(tx, consumers)
    rows = _list_rows(tx, consumers, records)
    wanted = {row.provider_uuid for row in rows}.union(providers, beside)
    return Held(records, resource_provider.lock_by_uuids(tx, wanted, ids), rows)


def check_providers(claims: Iterable[Claim], held: Held) -> None:
    """Check that the providers named in claims exist.

    :raises BadRequest: a provider does not exist; it names the first such
    """
    for uuid in provider_uuids(claims):
        if uuid not in held.providers:
            raise errors.BadRequest(
                f"Allocation for resource provider '{uuid}' that does not exist."
            )


def replace_all(tx: Transaction, claims: Collection[Claim], *, attempts: int) -> None:
    """Replace everything that the consumers of the claims use.

    :param attempts: how many times this may be tried while others change the same
        providers. They have to wait for our locks, so the first attempt never fails for
        that reason; all that matters is whether one is allowed.
    :raises ConcurrentUpdate: a consumer does not have the expected generation, or
        no attempt is allowed
    :raises BadRequest: there is no such provider
    :raises NotFound: there is no such resource class
    :raises Conflict: an amount does not fit
    """
    consumers = [each.consumer for each in claims]
    names = look_up(tx.connection, claims)
    held = hold(
        tx,
        names.consumers,
        provider_uuids(claims),
        ids=names.provider_ids,
    )
    consumer.check_generations(consumers, held.consumers)
    check_providers(claims, held)
    try:
        check_attempts(attempts)
        replace_held(tx, claims, names, held)
    except errors.ConcurrentUpdate as exc:
        raise errors.ConcurrentUpdate(
            f"Inventory and/or allocations changed while attempting to allocate: {exc}"
        ) from exc


def check_attempts(attempts: int) -> None:
    """Refuse a write that may not even be attempted once, as if it had lost a race.

    :raises ConcurrentUpdate: it may not
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
    wanted = [each.consumer for each in staying]
    new = consumer.store(tx, wanted, held.consumers, names.owners)
    found = claim.load_inventories(tx.connection, held.providers.values(), class_ids)
    for (uuid, name), given in inventories.items():
        if name in class_ids:
            known = found.get((uuid, name))
            found[uuid, name] = InventoryUsage.of(given, known.used if known else 0)
    try:
        claim.check_room(staying, found, sum_up(held.rows))
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

    :raises NotFound: it uses nothing
    """
    held = hold(tx, [consumer_uuid])
    # Allocations of a consumer without a record are not shown, so not deleted either.
    if not held.rows or not held.consumers:
        raise errors.NotFound(f"No allocations for consumer '{consumer_uuid}'")
    delete_held(tx, held)


def narrow(held: Held, uuids: Collection[str]) -> Held:
    """Return what belongs to some of the locked consumers only."""
    rows = [row for row in held.rows if row.consumer_uuid in uuids]
    used = {row.provider_uuid for row in rows}
    return Held(
        {uuid: held.consumers[uuid] for uuid in uuids if uuid in held.consumers},
        {uuid: each for uuid, each in held.providers.items() if uuid in used},
        rows,
    )


def delete_held(tx: Transaction, held: Held) -> None:
    """Remove locked consumers and their allocations. No generation changes."""
    _delete(tx, held.rows)
    consumer.remove(tx, held.consumers.values())
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


def _allocations_of(rows: Sequence[Any]) -> Allocations:
    amounts: dict[tuple[Any, ...], dict[str, int]] = {}
    for *key, class_name, used, _ in rows:
        amounts.setdefault(tuple(key), {})[class_name] = used
    times = [row.created_at for row in rows if row.created_at]
    allocations = [
        Allocation(Consumer(*consumer), provider_uuid, generation, each)
        for (*consumer, provider_uuid, generation), each in amounts.items()
    ]
    return Allocations(allocations, modified=max(times, default=utc_now()))


def _list_rows(
    tx: Transaction, uuids: Iterable[str], records: Collection[str]
) -> list[Row]:
    """Return the allocations of locked consumers, and of those without a record.

    A consumer that another request has just created is neither.
    """
    wanted = {uuid for uuid in uuids if exact_match.is_searchable(uuid)}
    rows: list[Row] = []
    stray: list[Row] = []
    for chunk in storage.chunks(sorted(wanted)):
        found: Sequence[Any] = tx.execute(_ROWS, {"consumers": chunk}).all()
        for record_id, *fields in found:
            row = Row(*fields)
            if row.consumer_uuid in records:
                rows.append(row)
            elif record_id is None and row.consumer_uuid in wanted:
                stray.append(row)
    return rows + _lock_stray(tx, stray)


def _lock_stray(tx: Transaction, rows: Sequence[Row]) -> list[Row]:
    """Lock allocations whose consumer has no record; return those still there.

    Other services left them behind. They count as used until their consumer is written.
    """
    kept: set[int] = set()
    for chunk in storage.chunks(sorted(row.id for row in rows)):
        row = models.Allocation
        found = storage.lock_rows(tx.connection, _IDS, row.id, chunk)
        kept.update(each.id for each in found)
    return [row for row in rows if row.id in kept]


def sum_up(rows: Iterable[Row]) -> dict[Place, int]:
    """Return how much rows use of each inventory."""
    used: collections.Counter[Place] = collections.Counter()
    for row in rows:
        used[row.provider_uuid, row.class_name] += row.used
    return used


def amounts_of(rows: Iterable[Row]) -> dict[str, dict[str, dict[str, int]]]:
    """Return what rows use, by consumer, provider and class."""
    amounts: dict[str, dict[str, dict[str, int]]] = {}
    for row in rows:
        of_consumer = amounts.setdefault(row.consumer_uuid, {})
        of_consumer.setdefault(row.provider_uuid, {})[row.class_name] = row.used
    return amounts


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
    """Return the existing consumers that are to use nothing."""
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
    """Return the entries for what claims change."""
    entries: list[Entry] = []
    before, places = amounts_of(held.rows), _places(held)
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

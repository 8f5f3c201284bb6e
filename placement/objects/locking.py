"""The locks of a write of allocations, and what is read under them.

All transactions take these locks in the same order: consumers, then providers, each by
id. Under them, no other transaction changes the usages.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence

import sqlalchemy as sa

from placement.db import models
from placement.model.allocation import Claim, Place
from placement.model.entry import Ownership
from placement.model.inventory import InventoryUsage
from placement.model.resource_provider import ResourceProvider
from placement.objects import exact_match, inventory, resource_provider
from placement.objects.transaction import Transaction
from placement_foundation.database import storage
from placement_foundation.database.trouble import LostRaceError

# The columns of the names of an owner, with the fields of a wanted consumer.
OWNER = (
    (models.Project.external_id, "project_id"),
    (models.User.external_id, "user_id"),
    (models.ConsumerType.name, "type"),
)
# The fields of a ``Record``, the last three for its ``Ownership``.
_RECORDS = (
    sa.select(
        models.Consumer.id,
        models.Consumer.uuid,
        models.Consumer.generation,
        models.Consumer.consumer_type_id,
        models.Project.external_id,
        models.User.external_id,
        models.ConsumerType.name,
    )
    .select_from(models.Consumer)
    .outerjoin(models.Project, models.OF_PROJECT)
    .outerjoin(models.User, models.OF_USER)
    .outerjoin(models.ConsumerType)
    .where(models.Consumer.id.in_(sa.bindparam("ids", expanding=True)))
    .order_by(models.Consumer.id)
)
# The columns of a ``Row``, after the id of the consumer's record.
_ROWS = (
    sa.select(
        models.Consumer.id,
        models.Allocation.id,
        models.Allocation.consumer_id,
        models.ResourceProvider.id,
        models.ResourceProvider.uuid,
        models.ResourceClass.name,
        models.Allocation.used,
    )
    .select_from(models.Allocation)
    .join(models.ResourceProvider, models.OF_PROVIDER)
    .join(models.ResourceClass, models.OF_CLASS)
    .outerjoin(models.Consumer, models.OF_CONSUMER)
    .where(models.Allocation.consumer_id.in_(sa.bindparam("consumers", expanding=True)))
    .order_by(models.Allocation.id)
)


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """The row of a consumer, locked for the rest of the transaction."""

    id: int
    generation: int
    type_id: int | None
    owner: Ownership


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A stored allocation. Its consumer is locked, if that has a record."""

    id: int
    consumer_uuid: str
    provider_id: int
    provider_uuid: str
    class_name: str
    used: int


@dataclasses.dataclass(frozen=True, slots=True)
class ClaimNames:
    """Claims, and the ids that belong to the names in them, before any lock.

    ``provider_uuids`` and ``class_names`` are those in the claims, in order, each once.
    The ids are keyed by name or UUID; ``owners`` has those for each column of
    ``OWNER``. ``using`` are the consumers with allocations.
    """

    claims: Sequence[Claim]
    provider_uuids: Sequence[str]
    class_names: Sequence[str]
    consumer_ids: Mapping[str, int]
    using: Collection[str]
    provider_ids: Mapping[str, int]
    class_ids: Mapping[str, int]
    owners: Sequence[Mapping[str, int]]


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """The locked consumers and providers of a write, and the rows that it replaces.

    Existing consumers and providers are keyed by UUID.
    """

    names: ClaimNames
    consumers: Mapping[str, Record]
    providers: Mapping[str, ResourceProvider]
    rows: Sequence[Row]


def look_up(
    connection: sa.Connection,
    claims: Iterable[Claim] = (),
    *,
    consumers: Collection[str] = (),
    providers: Collection[str] = (),
) -> ClaimNames:
    """Look up the names in claims, with one statement.

    Only the absence of a consumer can be relied on: of two requests that create the
    same one, one loses the race.

    :param consumers: the UUIDs of other consumers whose allocations are locked
    :param providers: the UUIDs of other providers to lock
    """
    claims = list(claims)
    uuids = {claim.consumer.uuid for claim in claims}.union(consumers)
    named = dict.fromkeys(uuid for claim in claims for uuid in claim.amounts)
    amounts = [each for claim in claims for each in claim.amounts.values()]
    class_names = dict.fromkeys(name for each in amounts for name in each)
    wanted = [claim.consumer for claim in claims if claim.amounts]
    owners = [
        (column, {getattr(consumer, field) for consumer in wanted} - {None})
        for column, field in OWNER
    ]
    consumer_ids, using, provider_ids, class_ids, *owner_ids = exact_match.ids_of_all(
        connection,
        [
            (models.Consumer.uuid, uuids),
            (models.Allocation.consumer_id, uuids),
            (models.ResourceProvider.uuid, {*named, *providers}),
            (models.ResourceClass.name, class_names),
            *owners,
        ],
    )
    return ClaimNames(
        claims,
        list(named),
        list(class_names),
        consumer_ids,
        using,
        provider_ids,
        class_ids,
        owner_ids,
    )


def hold(tx: Transaction, names: ClaimNames) -> Held:
    """Lock everything that a write of allocations touches, and read the allocations."""
    uuids = {*names.consumer_ids, *names.using}
    records = _lock_consumers(tx, names.consumer_ids) if names.consumer_ids else {}
    rows = _list_rows(tx, uuids, records) if uuids else []
    used = {row.provider_uuid: row.provider_id for row in rows}
    providers = resource_provider.lock_all(tx, {**used, **names.provider_ids})
    return Held(names, records, providers, rows)


def lock_consumers(tx: Transaction, uuids: Collection[str]) -> dict[str, Record]:
    """Lock the consumers that exist, in the order of their ids; return them by UUID.

    Every write of a consumer's allocations does this first, so the allocations of a
    locked consumer stay as they are.
    """
    return _lock_consumers(tx, load_consumer_ids(tx.connection, uuids))


def _lock_consumers(tx: Transaction, ids: Mapping[str, int]) -> dict[str, Record]:
    listed = sorted(ids.values())
    storage.lock_rows(tx.connection, models.Consumer.id, listed)
    # Only a statement that starts after the locks are granted sees a project, user or
    # type that a consumer got during the wait.
    rows = storage.select_each(tx.connection, _RECORDS, "ids", listed)
    return {
        uuid: Record(row_id, generation, type_id, Ownership(*owner))
        for row_id, uuid, generation, type_id, *owner in rows
        if uuid in ids
    }


def load_consumer_ids(
    connection: sa.Connection, uuids: Collection[str]
) -> dict[str, int]:
    """Return the ids of the consumers that exist by now, by UUID."""
    return exact_match.ids_by_string(connection, models.Consumer.uuid, uuids)


def _list_rows(
    tx: Transaction, uuids: Collection[str], records: Collection[str]
) -> list[Row]:
    """Return the allocations of locked consumers, and of those without a record.

    Allocations of a consumer that another request has just created are left out.
    """
    rows: list[Row] = []
    stray: list[Row] = []
    for record_id, *fields in storage.select_each(
        tx.connection, _ROWS, "consumers", sorted(uuids)
    ):
        row = Row(*fields)
        if row.consumer_uuid in records:
            rows.append(row)
        elif record_id is None and row.consumer_uuid in uuids:
            stray.append(row)
    return rows + _lock_stray(tx, stray) if stray else rows


def _lock_stray(tx: Transaction, rows: Sequence[Row]) -> list[Row]:
    """Lock allocations whose consumer has no record; return those still there.

    Other services left these allocations behind. They count as used until their
    consumer is written.
    """
    ids = [row.id for row in rows]
    kept = set(storage.lock_rows(tx.connection, models.Allocation.id, ids))
    return [row for row in rows if row.id in kept]


def load_inventories(
    connection: sa.Connection, held: Held
) -> dict[Place, InventoryUsage]:
    """Return the inventories that locked providers have of the classes in claims.

    :raises LostRaceError: an id is that of another class by now; the transaction
        begins again
    """
    uuids = {provider.id: uuid for uuid, provider in held.providers.items()}
    names = {class_id: name for name, class_id in held.names.class_ids.items()}
    inventories: dict[Place, InventoryUsage] = {}
    stored = inventory.load_used(connection, uuids, names)
    for (provider_id, class_id), (name, usage) in stored.items():
        if name != names[class_id]:
            raise LostRaceError(f"the class {names[class_id]} is now {name}")
        inventories[uuids[provider_id], name] = usage
    return inventories

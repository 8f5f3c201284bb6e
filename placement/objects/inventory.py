"""Inventories: how much of each resource class a provider has."""

import ctypes
import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.model import entry
from placement.model.entry import Entry
from placement.model.inventory import FIELDS, Inventory
from placement.model.member import members_of
from placement.model.resource_provider import ResourceProvider
from placement.objects import resource_class, resource_provider
from placement.objects.resource_provider import KnownProvider
from placement.objects.transaction import Transaction
from placement_foundation.database import storage

P = TypeVar("P", bound=KnownProvider)

# Identifies an inventory: the ids of its provider and resource class.
Key: TypeAlias = tuple[int, int]


# The amount used of the inventory in a row of a query.
USED: sa.ScalarSelect[Any] = (
    sa.select(sa.func.coalesce(sa.func.sum(models.Allocation.used), 0))
    .where(
        models.Allocation.resource_provider_id == models.Inventory.resource_provider_id
    )
    .where(models.Allocation.resource_class_id == models.Inventory.resource_class_id)
    .scalar_subquery()
)


_BY_PROVIDER = (
    sa.select(
        models.ResourceClass.name,
        models.ResourceClass.id,
        *[getattr(models.Inventory, name) for name in FIELDS],
    )
    .join(
        models.ResourceClass,
        models.ResourceClass.id == models.Inventory.resource_class_id,
    )
    .where(models.Inventory.resource_provider_id == sa.bindparam("provider"))
    .order_by(models.ResourceClass.id)
)

_STORED = (
    sa.select(
        models.Inventory.resource_provider_id,
        models.Inventory.resource_class_id,
        models.ResourceClass.name,
        *[getattr(models.Inventory, name) for name in FIELDS],
    )
    .join(
        models.ResourceClass,
        models.ResourceClass.id == models.Inventory.resource_class_id,
    )
    .where(
        models.Inventory.resource_provider_id.in_(
            sa.bindparam("providers", expanding=True)
        )
    )
    .order_by(models.Inventory.id)
)


@dataclasses.dataclass(frozen=True, slots=True)
class InventoryRecord:
    """An inventory as it is stored."""

    class_id: int
    inventory: Inventory


def list_by_provider(
    connection: sa.Connection, provider_id: int
) -> dict[str, Inventory]:
    """Return the inventories of a provider by class name, in class id order."""
    records = load_by_provider(connection, provider_id)
    return {name: record.inventory for name, record in records.items()}


def load_by_provider(
    connection: sa.Connection, provider_id: int
) -> dict[str, InventoryRecord]:
    """Return the inventory records of a provider by class name, in class id order."""
    rows: Iterable[Any] = connection.execute(_BY_PROVIDER, {"provider": provider_id})
    return {
        name: InventoryRecord(class_id, Inventory(*fields))
        for name, class_id, *fields in rows
    }


def replace_all(
    tx: Transaction,
    provider: ResourceProvider,
    wanted: Mapping[str, Inventory],
) -> int:
    """Make these the inventories of a provider, and return its new generation.

    :param wanted: by resource class name
    :raises NotFound: there is no such resource class
    :raises InventoryInUse: an inventory to be removed has allocations
    :raises ConcurrentUpdate: another request has changed the provider
    """
    entries = replace_of_many(tx, {provider: wanted})
    return _bump(tx, provider, entries)


def replace_of_many(
    tx: Transaction, wanted: Mapping[P, Mapping[str, Inventory]]
) -> list[Entry]:
    """Make these the inventories of providers, without changing their generations.

    The caller records the returned entries of the journal.

    :param wanted: by resource class name
    :raises NotFound: there is no such resource class
    :raises InventoryInUse: an inventory to be removed has allocations; the error names
        those of the first provider
    """
    names = [name for inventories in wanted.values() for name in inventories]
    ids = resource_class.lock_ids_by_name(tx, dict.fromkeys(names))
    rows = {
        (provider.id, ids[name]): inventory
        for provider, inventories in wanted.items()
        for name, inventory in inventories.items()
    }
    stored = _load_stored(tx.connection, wanted)
    stored_keys = stored.keys()
    _remove(tx, wanted, stored_keys - rows.keys())
    _update(tx, {key: rows[key] for key in rows.keys() & stored_keys})
    _insert(tx, {key: rows[key] for key in rows.keys() - stored_keys})
    before: dict[int, dict[str, Inventory]] = {}
    for (provider_id, _), (name, old) in stored.items():
        before.setdefault(provider_id, {})[name] = old
    return [
        each
        for provider, after in wanted.items()
        for each in _entries(
            tx.connection, provider, before.get(provider.id, {}), after
        )
    ]


def create(
    tx: Transaction,
    provider: ResourceProvider,
    class_name: str,
    inventory: Inventory,
) -> int:
    """Add an inventory to a provider, and return the provider's new generation.

    :raises NotFound: there is no such resource class
    :raises ConcurrentUpdate: the provider has an inventory of that class, or
        another request has changed the provider
    """
    class_id = resource_class.lock_ids_by_name(tx, [class_name])[class_name]
    if (provider.id, class_id) in _load_stored(tx.connection, [provider]):
        raise errors.ConcurrentUpdate(
            f"Inventory of class {class_name} on resource provider '{provider.uuid}' "
            "already exists."
        )
    _insert(tx, {(provider.id, class_id): inventory})
    entries = _entries(tx.connection, provider, {}, {class_name: inventory})
    return _bump(tx, provider, entries)


def update(
    tx: Transaction,
    provider: ResourceProvider,
    class_name: str,
    inventory: Inventory,
) -> int:
    """Change an inventory of a provider, and return the provider's new generation.

    :raises NotFound: there is no such resource class
    :raises BadRequest: the provider has no inventory of it
    :raises ConcurrentUpdate: another request has changed the provider
    """
    class_id = resource_class.ids_by_name(tx.connection, [class_name])[class_name]
    stored = _load_stored(tx.connection, [provider])
    if (provider.id, class_id) not in stored:
        raise errors.BadRequest(
            f"No inventory record with resource class for resource provider "
            f"{provider.uuid}: No inventory of class {class_name} found."
        )
    _update(tx, {(provider.id, class_id): inventory})
    before = {class_name: stored[provider.id, class_id][1]}
    entries = _entries(tx.connection, provider, before, {class_name: inventory})
    return _bump(tx, provider, entries)


def delete(tx: Transaction, provider: ResourceProvider, class_name: str) -> int:
    """Remove an inventory of a provider, and return the provider's new generation.

    :raises NotFound: the provider has no inventory of that class
    :raises InventoryInUse: it has allocations
    :raises ConcurrentUpdate: another request has changed the provider
    """
    record = load_by_provider(tx.connection, provider.id).get(class_name)
    if record is None:
        raise errors.NotFound(f"No inventory of class {class_name} found for delete")
    _remove(tx, [provider], {(provider.id, record.class_id)})
    entries = _entries(tx.connection, provider, {class_name: record.inventory}, {})
    return _bump(tx, provider, entries)


def _bump(tx: Transaction, provider: ResourceProvider, entries: Iterable[Entry]) -> int:
    bumped = resource_provider.bump(tx, [provider], entries)
    return bumped[provider.uuid].generation


def as_stored(
    connection: sa.Connection, inventories: Mapping[str, Inventory]
) -> Mapping[str, Inventory]:
    """Return inventories as the database returns them once they are stored.

    MySQL stores ratios in single precision, and returns six digits of them.
    """
    if connection.dialect.name not in ("mysql", "mariadb"):
        return inventories
    return {
        name: dataclasses.replace(
            each, allocation_ratio=_in_single_precision(each.allocation_ratio)
        )
        for name, each in inventories.items()
    }


def _in_single_precision(ratio: float) -> float:
    return float(f"{ctypes.c_float(ratio).value:.6g}")


def _entries(
    connection: sa.Connection,
    provider: KnownProvider,
    before: Mapping[str, Inventory],
    after: Mapping[str, Inventory],
) -> list[Entry]:
    stored = as_stored(connection, after)
    return entry.of_inventories(provider.uuid, provider.root_uuid, before, stored)


def _load_stored(
    connection: sa.Connection, providers: Iterable[KnownProvider]
) -> dict[Key, tuple[str, Inventory]]:
    """Return the inventories of providers, each with the name of its class."""
    stored: dict[Key, tuple[str, Inventory]] = {}
    for chunk in storage.chunks(provider.id for provider in providers):
        rows: Iterable[Any] = connection.execute(_STORED, {"providers": chunk})
        for owner, kind, name, *fields in rows:
            stored[owner, kind] = name, Inventory(*fields)
    return stored


def _remove(
    tx: Transaction, providers: Iterable[KnownProvider], keys: Collection[Key]
) -> None:
    """Remove inventories of providers.

    :raises InventoryInUse: some have allocations; the error names those of the first
        provider
    """
    used = _classes_in_use(tx.connection, keys)
    for provider in providers:
        if provider.id in used:
            raise errors.InventoryInUse(
                f"Inventory for '{', '.join(used[provider.id])}' on resource provider "
                f"'{provider.uuid}' in use."
            )
    row = models.Inventory
    for chunk in storage.chunks(sorted(keys)):
        delete = (
            sa.delete(row)
            # MariaDB uses an index for the first condition only.
            .where(row.resource_provider_id.in_({key[0] for key in chunk}))
            .where(
                sa.tuple_(row.resource_provider_id, row.resource_class_id).in_(chunk)
            )
        )
        tx.connection.execute(delete)


def _classes_in_use(
    connection: sa.Connection, keys: Collection[Key]
) -> dict[int, list[str]]:
    """Return the names of classes with allocations, in id order, by provider id.

    :param keys: the inventories to check
    """
    stored, taken = models.Inventory, models.Allocation
    use = (
        sa.select(taken.id)
        .where(taken.resource_provider_id == stored.resource_provider_id)
        .where(taken.resource_class_id == stored.resource_class_id)
    )
    used: dict[int, list[str]] = {}
    for chunk in storage.chunks({provider_id for provider_id, _ in keys}):
        query = (
            sa.select(
                stored.resource_provider_id,
                stored.resource_class_id,
                models.ResourceClass.name,
            )
            .join(
                models.ResourceClass,
                models.ResourceClass.id == stored.resource_class_id,
            )
            .where(stored.resource_provider_id.in_(chunk))
            .where(use.exists())
            .order_by(stored.resource_provider_id, stored.resource_class_id)
        )
        for provider_id, class_id, name in connection.execute(query):
            if (provider_id, class_id) in keys:
                used.setdefault(provider_id, []).append(name)
    return used


def _insert(tx: Transaction, inventories: Mapping[Key, Inventory]) -> None:
    rows = [
        {
            "resource_provider_id": provider_id,
            "resource_class_id": class_id,
            **members_of(inventory),
        }
        for (provider_id, class_id), inventory in sorted(inventories.items())
    ]
    if rows:
        tx.connection.execute(sa.insert(models.Inventory), rows)


def _update(tx: Transaction, inventories: Mapping[Key, Inventory]) -> None:
    """Overwrite inventories.

    :raises Conflict: one of them no longer exists
    """
    rows = [
        {
            "provider_id": provider_id,
            "class_id": class_id,
            **members_of(inventory),
        }
        for (provider_id, class_id), inventory in sorted(inventories.items())
    ]
    if not rows:
        return
    update = (
        sa.update(models.Inventory)
        .where(models.Inventory.resource_provider_id == sa.bindparam("provider_id"))
        .where(models.Inventory.resource_class_id == sa.bindparam("class_id"))
    )
    if tx.connection.execute(update, rows).rowcount != len(rows):
        raise errors.Conflict("Race condition detected when setting inventory.")

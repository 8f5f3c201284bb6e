"""Inventories: how much of each resource class a provider has."""

import ctypes
import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.model import entry
from placement.model.entry import Entry
from placement.model.inventory import FIELDS, Inventory, InventoryUsage
from placement.model.member import members_of
from placement.model.resource_provider import ResourceProvider
from placement.objects import association, resource_class, resource_provider, usage
from placement.objects.transaction import Transaction
from placement_foundation.database import storage

# Identifies an inventory: the ids of its provider and resource class.
Key: TypeAlias = tuple[int, int]

_stored = models.Inventory
_STORED: sa.Select[*tuple[Any, ...]] = (
    sa.select(
        _stored.resource_provider_id,
        _stored.resource_class_id,
        models.ResourceClass.name,
        *[getattr(_stored, name) for name in FIELDS],
    )
    .join(models.ResourceClass, models.ResourceClass.id == _stored.resource_class_id)
    .where(_stored.resource_provider_id.in_(sa.bindparam("providers", expanding=True)))
    .order_by(_stored.resource_provider_id, _stored.resource_class_id)
)
# A sum over allocations takes long, so it is made for some classes only.
_USED_OF = _STORED.add_columns(usage.USED).where(
    _stored.resource_class_id.in_(sa.bindparam("classes", expanding=True))
)
_UPDATE = (
    sa.update(_stored)
    .where(_stored.resource_provider_id == sa.bindparam("provider_id"))
    .where(_stored.resource_class_id == sa.bindparam("class_id"))
)


def load_used(
    connection: sa.Connection, provider_ids: Iterable[int], class_ids: Iterable[int]
) -> dict[Key, tuple[str, InventoryUsage]]:
    """Return what providers have and use of some classes, with the names of these.

    They are in the order of the ids of providers and classes.
    """
    rows = storage.select_each(
        connection, _USED_OF, "providers", provider_ids, classes=list(class_ids)
    )
    return {
        (provider_id, class_id): (name, InventoryUsage(*[*fields, int(used)]))
        for provider_id, class_id, name, *fields, used in rows
    }


def list_by_provider(
    connection: sa.Connection, provider: ResourceProvider
) -> dict[str, Inventory]:
    """Return the inventories of a provider by class name, in class id order."""
    return dict(_load(connection, [provider]).values())


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
    return _bump(tx, provider, replace_of_many(tx, {provider: wanted}))


def replace_of_many(
    tx: Transaction,
    wanted: Mapping[ResourceProvider, Mapping[str, Inventory]],
    *,
    left_out: Collection[str] | None = None,
) -> list[Entry]:
    """Make these the inventories of providers, without changing their generations.

    The caller records the returned entries of the journal.

    :param wanted: by resource class name
    :param left_out: the classes whose inventories are removed if they are not wanted;
        None means all
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
    stored = _load(tx.connection, wanted)
    if left_out is not None:
        stored = {
            key: each
            for key, each in stored.items()
            if key in rows or each[0] in left_out
        }
    _remove(tx, wanted, stored.keys() - rows.keys())
    _update(tx, {key: rows[key] for key in rows.keys() & stored.keys()})
    _insert(tx, {key: rows[key] for key in rows.keys() - stored.keys()})
    before: dict[int, dict[str, Inventory]] = {}
    for (provider_id, _), (name, old) in stored.items():
        before.setdefault(provider_id, {})[name] = old
    return [
        each
        for provider, inventories in wanted.items()
        for each in entry.of_inventories(
            provider.uuid,
            provider.root_uuid,
            before.get(provider.id, {}),
            as_stored(tx.connection, inventories),
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
    if class_name in list_by_provider(tx.connection, provider):
        raise errors.ConcurrentUpdate(
            f"Inventory of class {class_name} on resource provider '{provider.uuid}' "
            "already exists."
        )
    entries = replace_of_many(tx, {provider: {class_name: inventory}}, left_out=())
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
    resource_class.ids_by_name(tx.connection, [class_name])
    if class_name not in list_by_provider(tx.connection, provider):
        raise errors.BadRequest(
            f"No inventory record with resource class for resource provider "
            f"{provider.uuid}: No inventory of class {class_name} found."
        )
    entries = replace_of_many(tx, {provider: {class_name: inventory}}, left_out=())
    return _bump(tx, provider, entries)


def delete(tx: Transaction, provider: ResourceProvider, class_name: str) -> int:
    """Remove an inventory of a provider, and return the provider's new generation.

    :raises NotFound: the provider has no inventory of that class
    :raises InventoryInUse: it has allocations
    :raises ConcurrentUpdate: another request has changed the provider
    """
    if class_name not in list_by_provider(tx.connection, provider):
        raise errors.NotFound(f"No inventory of class {class_name} found for delete")
    entries = replace_of_many(tx, {provider: {}}, left_out=[class_name])
    return _bump(tx, provider, entries)


def _bump(tx: Transaction, provider: ResourceProvider, entries: Iterable[Entry]) -> int:
    resource_provider.record_change(tx, [provider], entries, bump=True)
    return provider.generation + 1


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


def _load(
    connection: sa.Connection, providers: Iterable[ResourceProvider]
) -> dict[Key, tuple[str, Inventory]]:
    """Return the inventories of providers, each with the name of its class."""
    ids = [provider.id for provider in providers]
    return {
        (provider_id, class_id): (name, Inventory(*fields))
        for provider_id, class_id, name, *fields in storage.select_each(
            connection, _STORED, "providers", ids
        )
    }


def _remove(
    tx: Transaction, providers: Iterable[ResourceProvider], keys: Collection[Key]
) -> None:
    """Remove inventories of providers.

    :raises InventoryInUse: some have allocations; the error names those of the first
        provider
    """
    used: dict[int, list[str]] = {}
    removed = {key[0] for key in keys}, {key[1] for key in keys}
    for key, (name, inventory) in load_used(tx.connection, *removed).items():
        if key in keys and inventory.used:
            used.setdefault(key[0], []).append(name)
    for provider in providers:
        if provider.id in used:
            raise errors.InventoryInUse(
                f"Inventory for '{', '.join(used[provider.id])}' on resource provider "
                f"'{provider.uuid}' in use."
            )
    association.remove(tx, _stored.resource_class_id, keys)


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
    if rows and tx.connection.execute(_UPDATE, rows).rowcount != len(rows):
        raise errors.Conflict("Race condition detected when setting inventory.")

"""Inventories: how much of each resource class a provider has."""

import dataclasses
import datetime
from collections.abc import Collection, Iterable, Mapping

import sqlalchemy as sa
from sqlalchemy.orm import Session

from placement import errors
from placement.db import models
from placement.objects import resource_class, resource_provider
from placement.objects.resource_provider import ResourceProvider
from placement.search.model import Stock


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """What a provider has of one resource class, in units of the class."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 0x7FFFFFFF
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        """What can be allocated in all."""
        return self.stock(used=0).capacity

    def stock(self, used: int) -> Stock:
        """Return the inventory with what is used of it."""
        return Stock(
            self.total,
            self.reserved,
            self.min_unit,
            self.max_unit,
            self.step_size,
            self.allocation_ratio,
            used,
        )


FIELDS = [field.name for field in dataclasses.fields(Inventory)]


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """An inventory as it is kept; ``modified`` is in UTC."""

    class_id: int
    inventory: Inventory
    modified: datetime.datetime | None


def list_by_provider(session: Session, provider_id: int) -> dict[str, Inventory]:
    """Return the inventories of a provider by class name, in class id order."""
    records = load_by_provider(session, provider_id)
    return {name: record.inventory for name, record in records.items()}


def load_by_provider(session: Session, provider_id: int) -> dict[str, Record]:
    """Return the inventory records of a provider by class name, in class id order."""
    query = (
        sa.select(
            models.ResourceClass.name,
            models.ResourceClass.id,
            sa.func.coalesce(models.Inventory.updated_at, models.Inventory.created_at),
            *[getattr(models.Inventory, name) for name in FIELDS],
        )
        .join(
            models.ResourceClass,
            models.ResourceClass.id == models.Inventory.resource_class_id,
        )
        .where(models.Inventory.resource_provider_id == provider_id)
        .order_by(models.ResourceClass.id)
    )
    return {
        name: Record(class_id, Inventory(*fields), modified)
        for name, class_id, modified, *fields in session.connection().execute(query)
    }


def replace_all(
    session: Session, provider: ResourceProvider, wanted: Mapping[str, Inventory]
) -> int:
    """Make these the inventories of a provider, and return its new generation.

    :param wanted: by resource class name
    :raises NotFound: there is no such resource class
    :raises InventoryInUse: one that is to go has allocations
    :raises ConcurrentUpdate: somebody else has changed the provider
    """
    ids = resource_class.lock_ids_by_name(session, wanted)
    rows = {ids[name]: inventory for name, inventory in wanted.items()}
    known = _known_class_ids(session, provider.id)
    remove(session, provider, known - rows.keys())
    _update(session, provider, {key: rows[key] for key in rows.keys() & known})
    _insert(session, provider, {key: rows[key] for key in rows.keys() - known})
    return _bump(session, provider)


def create(
    session: Session, provider: ResourceProvider, class_name: str, inventory: Inventory
) -> int:
    """Add an inventory to a provider, and return the provider's new generation.

    :raises NotFound: there is no such resource class
    :raises ConcurrentUpdate: the provider has an inventory of that class, or somebody
        else has changed the provider
    """
    class_id = resource_class.lock_ids_by_name(session, [class_name])[class_name]
    if class_id in _known_class_ids(session, provider.id):
        raise errors.ConcurrentUpdate(
            f"Inventory of class {class_name} on resource provider '{provider.uuid}' "
            "already exists."
        )
    _insert(session, provider, {class_id: inventory})
    return _bump(session, provider)


def update(
    session: Session, provider: ResourceProvider, class_id: int, inventory: Inventory
) -> int:
    """Change an inventory of a provider, and return the provider's new generation.

    :raises ConcurrentUpdate: somebody else has changed the provider
    """
    _update(session, provider, {class_id: inventory})
    return _bump(session, provider)


def delete(
    session: Session, provider: ResourceProvider, class_ids: Collection[int]
) -> int:
    """Remove inventories of a provider, and return the provider's new generation.

    :raises InventoryInUse: one of them has allocations
    :raises ConcurrentUpdate: somebody else has changed the provider
    """
    remove(session, provider, class_ids)
    return _bump(session, provider)


def remove(
    session: Session, provider: ResourceProvider, class_ids: Collection[int]
) -> None:
    """Remove inventories of a provider, and leave its generation alone.

    :raises InventoryInUse: one of them has allocations
    """
    if not class_ids:
        return
    used = _classes_in_use(session, provider.id, class_ids)
    if used:
        raise errors.InventoryInUse(
            f"Inventory for '{', '.join(used)}' on resource provider "
            f"'{provider.uuid}' in use."
        )
    delete = (
        sa.delete(models.Inventory)
        .where(models.Inventory.resource_provider_id == provider.id)
        .where(models.Inventory.resource_class_id.in_(class_ids))
    )
    session.connection().execute(delete)


def _bump(session: Session, provider: ResourceProvider) -> int:
    resource_provider.record_change(session, [provider], bump=True)
    return provider.generation + 1


def _known_class_ids(session: Session, provider_id: int) -> set[int]:
    query = sa.select(models.Inventory.resource_class_id).where(
        models.Inventory.resource_provider_id == provider_id
    )
    return set(session.connection().execute(query).scalars())


def _classes_in_use(
    session: Session, provider_id: int, class_ids: Iterable[int]
) -> list[str]:
    """Return the names of the classes that have allocations, in class id order."""
    taken = (
        sa.select(models.Allocation.id)
        .where(models.Allocation.resource_provider_id == provider_id)
        .where(models.Allocation.resource_class_id == models.ResourceClass.id)
    )
    query = (
        sa.select(models.ResourceClass.name)
        .where(models.ResourceClass.id.in_(class_ids))
        .where(taken.exists())
        .order_by(models.ResourceClass.id)
    )
    return list(session.connection().execute(query).scalars())


def _insert(
    session: Session, provider: ResourceProvider, inventories: Mapping[int, Inventory]
) -> None:
    rows = [
        {
            "resource_provider_id": provider.id,
            "resource_class_id": class_id,
            **dataclasses.asdict(inventory),
        }
        for class_id, inventory in sorted(inventories.items())
    ]
    if rows:
        session.connection().execute(sa.insert(models.Inventory), rows)


def _update(
    session: Session, provider: ResourceProvider, inventories: Mapping[int, Inventory]
) -> None:
    """Overwrite inventories, keyed by class id.

    :raises Conflict: one of them is gone
    """
    rows = [
        {"class_id": class_id, **dataclasses.asdict(inventory)}
        for class_id, inventory in sorted(inventories.items())
    ]
    if not rows:
        return
    update = (
        sa.update(models.Inventory)
        .where(models.Inventory.resource_provider_id == provider.id)
        .where(models.Inventory.resource_class_id == sa.bindparam("class_id"))
    )
    if session.connection().execute(update, rows).rowcount != len(rows):
        raise errors.Conflict("Race condition detected when setting inventory.")

"""Resource classes: the kinds of resources that there are."""

from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.model.entry import Entry, EntryType
from placement.model.resource_class import FIRST_CUSTOM_ID, UNKNOWN_CLASS, ResourceClass
from placement.model.trait import CUSTOM_PREFIX
from placement.objects import exact_match
from placement.objects.transaction import Transaction
from placement_foundation.database.trouble import LostRaceError

CLASSES = sa.select(
    models.ResourceClass.id,
    models.ResourceClass.name,
    sa.func.coalesce(models.ResourceClass.updated_at, models.ResourceClass.created_at),
).order_by(models.ResourceClass.id)


def ids_by_name(connection: sa.Connection, names: Iterable[str]) -> dict[str, int]:
    """Return the ids of resource classes, keyed by name.

    :raises NotFound: there is no such class; it names the first one that is unknown
    """
    names = list(names)
    ids = exact_match.ids_by_string(connection, models.ResourceClass.name, names)
    check_known(names, ids)
    return ids


def check_known(names: Iterable[str], known: Collection[str]) -> None:
    """Check that resource classes are known.

    :raises NotFound: there is no such class; it names the first one that is unknown
    """
    for name in names:
        if name not in known:
            raise errors.NotFound(UNKNOWN_CLASS.format(name=name))


def lock_ids_by_name(tx: Transaction, names: Iterable[str]) -> dict[str, int]:
    """Return the ids of resource classes, locked against deletion until this commits.

    :raises NotFound: there is no such class; it names the first one that is unknown
    :raises LostRaceError: a class was deleted meanwhile; the transaction begins again
    """
    ids = ids_by_name(tx.connection, names)
    custom = {name: key for name, key in ids.items() if key >= FIRST_CUSTOM_ID}
    if custom:
        query = (
            sa.select(models.ResourceClass.name)
            .where(models.ResourceClass.id.in_(custom.values()))
            .order_by(models.ResourceClass.id)
            .with_for_update(read=True, key_share=True)
        )
        # A class may have been deleted since, and its id given to another one.
        if not custom.keys() <= set(tx.connection.execute(query).scalars()):
            raise LostRaceError("a resource class has gone")
    return ids


def list_all(connection: sa.Connection) -> list[ResourceClass]:
    """Return all resource classes in the order of their ids, standard ones first."""
    rows: Iterable[Any] = connection.execute(CLASSES)
    return [ResourceClass(*row) for row in rows]


def get_by_name(connection: sa.Connection, name: str) -> ResourceClass:
    """Return a resource class.

    :raises NotFound: there is no such class
    """
    kind = find_by_name(connection, name)
    if kind is None:
        raise errors.NotFound(UNKNOWN_CLASS.format(name=name))
    return kind


def lock_by_name(tx: Transaction, name: str) -> ResourceClass:
    """Return a resource class, locked: no other request uses or changes it.

    :raises NotFound: there is no such class
    """
    if exact_match.is_searchable(name):
        query = sa.select(models.ResourceClass.id)
        query = query.where(models.ResourceClass.name == name).with_for_update()
        tx.connection.execute(query).all()
    return get_by_name(tx.connection, name)


def find_by_name(connection: sa.Connection, name: str) -> ResourceClass | None:
    """Return a resource class, or None if there is none of that name."""
    return next((each for each in list_all(connection) if each.name == name), None)


def ensure(tx: Transaction, names: Iterable[str]) -> list[str]:
    """Create the custom resource classes that are new, and return their names."""
    custom = [name for name in set(names) if name.startswith(CUSTOM_PREFIX)]
    if not _list_new(tx.connection, custom):
        return []
    # Wait for transactions that create classes, so that no id is used twice.
    first = sa.select(models.ResourceClass.id).order_by(models.ResourceClass.id)
    tx.connection.execute(first.limit(1).with_for_update()).all()
    new = _list_new(tx.connection, custom)
    newest = tx.connection.scalar(sa.select(sa.func.max(models.ResourceClass.id)))
    rows = [
        {"id": key, "name": name}
        for key, name in enumerate(new, max(FIRST_CUSTOM_ID, (newest or 0) + 1))
    ]
    if rows:
        tx.connection.execute(sa.insert(models.ResourceClass), rows)
        tx.record_names([Entry(EntryType.CLASS_CREATED, name) for name in new])
    return new


def _list_new(connection: sa.Connection, names: Iterable[str]) -> list[str]:
    ids = exact_match.ids_by_string(connection, models.ResourceClass.name, names)
    return sorted(set(names) - ids.keys())


def rename(tx: Transaction, known: ResourceClass, name: str) -> None:
    """Give a class another name, which is known to be free."""
    update = sa.update(models.ResourceClass).where(models.ResourceClass.id == known.id)
    tx.connection.execute(update.values(name=name))
    if name != known.name:
        entries = [Entry(EntryType.CLASS_RENAMED, known.name, after={"name": name})]
        tx.record_names(entries)


def delete(tx: Transaction, known: ResourceClass) -> None:
    """Delete a resource class, which is locked: no inventory of it is being added.

    :raises Conflict: a provider has an inventory of it
    """
    used = sa.select(models.Inventory.id).where(
        models.Inventory.resource_class_id == known.id
    )
    if tx.connection.execute(used.limit(1)).first():
        raise errors.Conflict("Class is in use in inventory")
    row = models.ResourceClass
    tx.connection.execute(sa.delete(row).where(row.id == known.id))
    tx.record_names([Entry(EntryType.CLASS_DELETED, known.name)])

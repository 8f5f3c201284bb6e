"""Creating, renaming and deleting resource providers.

A single provider is a batch of one. The number of statements does not depend on the
size of a batch.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.model import entry
from placement.model.entry import Node
from placement.model.resource_provider import ResourceProvider
from placement.objects import declared, resource_provider
from placement.objects.resource_provider import node_of, record_change
from placement.objects.transaction import Transaction
from placement_foundation.database import storage

# With its UUID, the interim name of a provider whose name another provider gets.
VACATED = "placement: vacated by "
BELONGINGS = (
    models.Inventory,
    models.ResourceProviderAggregate,
    models.ResourceProviderTrait,
)


class New(NamedTuple):
    """A provider to be created."""

    uuid: str
    name: str
    parent_uuid: str | None


def create(
    tx: Transaction, uuid: str, name: str, parent_uuid: str | None
) -> ResourceProvider:
    """Create a provider: a root, or a child of another one.

    :raises BadRequest: the parent does not exist
    :raises DuplicateName: the UUID or the name is taken
    """
    parents = resource_provider.lock_by_uuids(tx, [parent_uuid] if parent_uuid else [])
    if parent_uuid is not None and parent_uuid not in parents:
        raise errors.BadRequest(resource_provider.NO_PARENT)
    _check_is_new(tx.connection, uuid, name)
    return create_many(tx, [New(uuid, name, parent_uuid)], parents)[uuid]


def _check_is_new(connection: sa.Connection, uuid: str, name: str) -> None:
    row = models.ResourceProvider
    # The database decides which strings are equal, as in its unique keys.
    query = sa.select(row.uuid).where((row.uuid == uuid) | (row.name == name))
    taken = set(connection.execute(query).scalars())
    if uuid in taken:
        raise errors.DuplicateName(
            f"Conflicting resource provider uuid: {uuid} already exists."
        )
    if taken:
        raise errors.DuplicateName(
            f"Conflicting resource provider name: {name} already exists."
        )


def create_many(
    tx: Transaction, wanted: Iterable[New], known: Mapping[str, ResourceProvider]
) -> dict[str, ResourceProvider]:
    """Create providers whose names and UUIDs are known to be free.

    :param known: providers that exist and are locked, by UUID
    :returns: these and the new ones, by UUID
    """
    there, waiting = dict(known), list(wanted)
    while waiting:
        level = [each for each in waiting if each.parent_uuid in {None, *there}]
        created = _insert(tx, level, there)
        entries = [
            entry.of_provider(each.uuid, None, _node(each, created)) for each in level
        ]
        record_change(tx, created.values(), entries, bump=False)
        there |= created
        waiting = [each for each in waiting if each.uuid not in created]
    return there


def _node(new: New, created: Mapping[str, ResourceProvider]) -> Node:
    return Node(new.name, new.parent_uuid, created[new.uuid].root_uuid)


def _insert(
    tx: Transaction, level: Sequence[New], there: Mapping[str, ResourceProvider]
) -> Mapping[str, ResourceProvider]:
    """Insert providers whose parents exist, and return them."""
    row = models.ResourceProvider
    rows = [
        {
            "uuid": each.uuid,
            "name": each.name,
            "generation": 0,
            "parent_provider_id": parent and parent.id,
            "root_provider_id": parent and parent.root_id,
        }
        for each in level
        for parent in [there[each.parent_uuid] if each.parent_uuid else None]
    ]
    tx.connection.execute(sa.insert(row), rows)
    uuids = [each.uuid for each in level]
    for chunk in storage.chunks(each.uuid for each in level if not each.parent_uuid):
        roots = sa.update(row).where(row.uuid.in_(chunk))
        tx.connection.execute(roots.values(root_provider_id=row.id))
    # No other transaction sees the new rows until this one commits.
    return resource_provider.lock_by_uuids(tx, uuids)


def vacate(tx: Transaction, providers: Iterable[ResourceProvider]) -> None:
    """Take the names of providers that are about to be renamed or deleted.

    Other providers may get these names in the same transaction.
    """
    row = models.ResourceProvider
    for provider in providers:
        update = sa.update(row).where(row.id == provider.id)
        tx.connection.execute(update.values(name=f"{VACATED}{provider.uuid}"))


def rename(tx: Transaction, provider: ResourceProvider, name: str) -> None:
    """Give a provider another name.

    :raises DuplicateName: another provider has it
    """
    if name == provider.name:
        return
    row = models.ResourceProvider
    taken = sa.select(row.id).where(row.name == name).where(row.id != provider.id)
    if tx.connection.execute(taken).first():
        raise errors.DuplicateName(
            f"Conflicting resource provider {name} already exists."
        )
    update = sa.update(row).where(row.id == provider.id).values(name=name)
    tx.connection.execute(update)
    before = node_of(provider)
    after = before._replace(name=name)
    entries = [entry.of_provider(provider.uuid, before, after)]
    record_change(tx, [provider], entries, bump=False)


def delete(tx: Transaction, provider: ResourceProvider) -> None:
    """Delete a provider and everything that belongs to it.

    :raises CannotDeleteParent: it has children
    :raises ProviderInUse: it has allocations
    """
    row = models.ResourceProvider
    children = sa.select(row.id).where(row.parent_provider_id == provider.id)
    if tx.connection.execute(children.limit(1)).first():
        raise errors.CannotDeleteParent(
            f"Unable to delete parent resource provider {provider.uuid}: "
            "It has child resource providers."
        )
    failed = f"Unable to delete resource provider {provider.uuid}: "
    with errors.retold(errors.ProviderInUse, failed):
        delete_many(tx, [provider])


def delete_many(tx: Transaction, providers: Sequence[ResourceProvider]) -> None:
    """Delete providers, and what belongs to them.

    The providers are locked, and have no children but each other.

    :raises ProviderInUse: one of them has allocations
    """
    row, taken = models.ResourceProvider, models.Allocation.resource_provider_id
    for chunk in storage.chunks(provider.id for provider in providers):
        in_use = sa.select(taken).where(taken.in_(chunk)).limit(1)
        if tx.connection.execute(in_use).first():
            raise errors.ProviderInUse("Resource provider has allocations.")
        for belonging in BELONGINGS:
            tx.connection.execute(
                sa.delete(belonging).where(belonging.resource_provider_id.in_(chunk))
            )
        here = row.id.in_(chunk)
        # MySQL does not delete a row that another one refers to, not even itself.
        alone = {"root_provider_id": None, "parent_provider_id": None}
        tx.connection.execute(sa.update(row).where(here).values(alone))
        tx.connection.execute(sa.delete(row).where(here))
    declared.forget(tx, (provider.uuid for provider in providers))
    entries = [entry.of_provider(each.uuid, node_of(each), None) for each in providers]
    record_change(tx, providers, entries, bump=False)

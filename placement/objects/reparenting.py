"""Moving resource providers, with what is below them, from one tree to another."""

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy import orm

from placement import errors
from placement.db import models
from placement.model import entry
from placement.model.entry import Entry, Node
from placement.model.resource_provider import UNKNOWN_PROVIDER, ResourceProvider
from placement.objects import resource_provider
from placement.objects.transaction import Transaction
from placement_foundation.database import storage
from placement_foundation.database.trouble import LostRaceError


def move(
    tx: Transaction,
    provider: ResourceProvider,
    parent_uuid: str | None,
    *,
    allow_reparenting: bool,
) -> ResourceProvider:
    """Make a provider a child of another one, or a root; return what it is now.

    It is locked. The providers below it move with it.

    :param allow_reparenting: whether it may leave its current parent
    :raises NotFound: the provider no longer exists
    :raises BadRequest: this move is not allowed
    """
    trees = lock_trees(tx, [provider.uuid, parent_uuid or provider.uuid])
    moved = trees.get(provider.uuid)
    if moved is None:
        raise errors.NotFound(UNKNOWN_PROVIDER.format(uuid=provider.uuid))
    if parent_uuid == moved.parent_uuid:
        return moved
    subtree = _subtree(trees.values(), moved)
    _check_move(trees, subtree, moved, parent_uuid, allow_reparenting)
    row, parent = models.ResourceProvider, trees[parent_uuid] if parent_uuid else None
    update = sa.update(row).where(row.id == moved.id)
    tx.connection.execute(update.values(parent_provider_id=parent and parent.id))
    root = trees[parent.root_uuid] if parent else moved
    changed = [moved]
    if root.uuid != moved.root_uuid:
        changed = list(subtree.values())
        for chunk in storage.chunks(provider.id for provider in changed):
            update = sa.update(row).where(row.id.in_(chunk))
            tx.connection.execute(update.values(root_provider_id=root.id))
    entries = _entries(changed, moved, parent_uuid, root)
    now = moved._replace(parent_uuid=parent_uuid, root_uuid=root.uuid, root_id=root.id)
    resource_provider.record_change(tx, [*changed, now], entries, bump=False)
    return now


def _entries(
    changed: Iterable[ResourceProvider],
    moved: ResourceProvider,
    parent_uuid: str | None,
    root: ResourceProvider,
) -> list[Entry]:
    """Return the entries for the providers that have another parent or root now."""
    entries = []
    for provider in changed:
        before = resource_provider.node_of(provider)
        parent = parent_uuid if provider.uuid == moved.uuid else before.parent
        after = Node(before.name, parent, root.uuid)
        entries.append(entry.of_provider(provider.uuid, before, after))
    return entries


def lock_trees(tx: Transaction, uuids: Iterable[str]) -> dict[str, ResourceProvider]:
    """Return whole trees, locked until this transaction ends.

    :param uuids: a member of each tree; unknown ones are left out
    :returns: every member of the trees, by UUID, in id order
    :raises LostRaceError: a provider with a smaller id was moved into a tree; the
        transaction begins again
    """
    wanted = list(uuids)
    members: set[int] = set()
    providers: dict[str, ResourceProvider] = {}
    # A tree may grow before its lock is granted, but not where it is locked: adding to
    # it locks the parent. New providers have the highest ids, so they are locked in
    # order; a provider that was moved here may not be.
    while grown := _member_ids(tx.connection, wanted) - members:
        if members and min(grown) < max(members):
            raise LostRaceError("a tree grew before it was locked")
        locked = resource_provider.lock_by_ids(tx, grown)
        providers.update((provider.uuid, provider) for provider in locked)
        members |= grown
    return providers


def _member_ids(connection: sa.Connection, uuids: list[str]) -> set[int]:
    member, named = models.ResourceProvider, orm.aliased(models.ResourceProvider)
    # In one statement: between two, a whole tree may be moved to another root.
    roots = sa.select(named.root_provider_id).where(named.uuid.in_(uuids))
    query = sa.select(member.id).where(member.root_provider_id.in_(roots))
    return set(connection.execute(query).scalars())


def _subtree(
    providers: Iterable[ResourceProvider], top: ResourceProvider
) -> dict[str, ResourceProvider]:
    """Return a provider and all below it, by UUID."""
    children: dict[str | None, list[ResourceProvider]] = {}
    for provider in providers:
        children.setdefault(provider.parent_uuid, []).append(provider)
    subtree = {}
    waiting = [top]
    while waiting:
        provider = waiting.pop()
        subtree[provider.uuid] = provider
        waiting += children.get(provider.uuid, [])
    return subtree


def _check_move(
    trees: dict[str, ResourceProvider],
    subtree: dict[str, ResourceProvider],
    moved: ResourceProvider,
    parent_uuid: str | None,
    allow_reparenting: bool,
) -> None:
    if parent_uuid is None:
        if not allow_reparenting:
            raise errors.BadRequest("un-parenting a provider is not currently allowed.")
    elif parent_uuid not in trees:
        raise errors.BadRequest(resource_provider.NO_PARENT)
    elif moved.parent_uuid and not allow_reparenting:
        raise errors.BadRequest("re-parenting a provider is not currently allowed.")
    elif parent_uuid in subtree:
        raise errors.BadRequest("creating loop in the provider tree is not allowed.")

"""Writes about many providers at once.

The number of statements does not depend on the number of providers.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import orm

from placement import errors
from placement.db import models
from placement.model import entry
from placement.model.entry import Entry, Node
from placement.model.resource_provider import ResourceProvider
from placement.objects import aggregate, declared, resource_provider, trait
from placement.objects.resource_provider import BELONGINGS, KnownProvider
from placement.objects.transaction import Transaction
from placement_foundation.database import storage


class New(NamedTuple):
    """A provider to be created."""

    uuid: str
    name: str
    parent_uuid: str | None


def create_providers(
    tx: Transaction, wanted: Iterable[New], known: Mapping[str, KnownProvider]
) -> dict[str, KnownProvider]:
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
        resource_provider.record_change(tx, created.values(), entries, bump=False)
        there |= created
        waiting = [each for each in waiting if each.uuid not in created]
    return there


def _node(new: New, created: Mapping[str, KnownProvider]) -> Node:
    return Node(new.name, new.parent_uuid, created[new.uuid].root_uuid)


def _insert(
    tx: Transaction, level: Sequence[New], there: Mapping[str, KnownProvider]
) -> Mapping[str, KnownProvider]:
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
    tx.execute(sa.insert(row), rows)
    uuids = [each.uuid for each in level]
    for chunk in storage.chunks(each.uuid for each in level if not each.parent_uuid):
        roots = sa.update(row).where(row.uuid.in_(chunk))
        tx.execute(roots.values(root_provider_id=row.id))
    # They are ours alone until this commits.
    return resource_provider.lock_by_uuids(tx, uuids)


def delete_providers(tx: Transaction, providers: Sequence[ResourceProvider]) -> None:
    """Delete providers, and what belongs to them.

    They are locked with their trees, and known to have no other children.

    :raises ProviderInUse: one of them has allocations
    """
    row, taken = models.ResourceProvider, models.Allocation.resource_provider_id
    for chunk in storage.chunks(provider.id for provider in providers):
        in_use = sa.select(taken).where(taken.in_(chunk)).limit(1)
        if tx.execute(in_use).first():
            raise errors.ProviderInUse("Resource provider has allocations.")
        for belonging in BELONGINGS:
            tx.execute(
                sa.delete(belonging).where(belonging.resource_provider_id.in_(chunk))
            )
        here = row.id.in_(chunk)
        # MySQL does not delete a row that another one refers to, not even itself.
        alone = {"root_provider_id": None, "parent_provider_id": None}
        tx.execute(sa.update(row).where(here).values(alone))
        tx.execute(sa.delete(row).where(here))
    declared.forget(tx, (provider.uuid for provider in providers))
    entries = [
        entry.of_provider(each.uuid, resource_provider.node_of(each), None)
        for each in providers
    ]
    resource_provider.record_change(tx, providers, entries, bump=False)


def set_traits(
    tx: Transaction, wanted: Mapping[KnownProvider, Set[str]]
) -> list[Entry]:
    """Make these the traits of providers; return the entries for the journal.

    :raises BadRequest: there is no such trait
    """
    ids = trait.ensure(tx, set().union(*wanted.values()))
    member = models.ResourceProviderTrait.trait_id
    return _associate(tx, member, models.Trait.name, wanted, ids, entry.TRAITS_CHANGED)


def set_aggregates(
    tx: Transaction, wanted: Mapping[KnownProvider, Set[str]]
) -> list[Entry]:
    """Make these the aggregates of providers; return the entries for the journal.

    :raises Conflict: the database considers one equal to another spelling of its UUID
    """
    ids = aggregate.ensure(tx, sorted(set().union(*wanted.values())))
    member = models.ResourceProviderAggregate.aggregate_id
    kind = entry.AGGREGATES_CHANGED
    return _associate(tx, member, models.Aggregate.uuid, wanted, ids, kind)


def _associate(
    tx: Transaction,
    member: orm.InstrumentedAttribute[int],
    name: orm.InstrumentedAttribute[Any],
    wanted: Mapping[KnownProvider, Set[str]],
    ids: Mapping[str, int],
    kind: str,
) -> list[Entry]:
    """Associate providers with these and no others.

    :param member: the column with the id of the associated thing
    :param name: the column of the thing itself that has its name
    :param ids: the ids of the things, by name
    :param kind: the type of the entries
    """
    row, thing = member.class_, name.class_
    owners = {provider.id: provider for provider in wanted}
    known: dict[int, dict[str, int]] = {key: {} for key in owners}
    for chunk in storage.chunks(sorted(owners)):
        query = sa.select(row.resource_provider_id, name, member)
        query = query.outerjoin(thing, thing.id == member)
        query = query.where(row.resource_provider_id.in_(chunk))
        for owner, text, key in tx.execute(query):
            known[owner][text or ""] = key
    added = {key: wanted[owners[key]] - known[key].keys() for key in known}
    removed = {key: known[key].keys() - wanted[owners[key]] for key in known}
    gone = [(key, known[key][text]) for key in removed for text in removed[key]]
    for pairs in storage.chunks(sorted(gone)):
        # MariaDB uses an index for the first condition only.
        these = row.resource_provider_id.in_(sorted({owner for owner, _ in pairs}))
        both = sa.tuple_(row.resource_provider_id, member).in_(pairs)
        tx.execute(sa.delete(row).where(these, both))
    new = sorted((key, ids[text]) for key in added for text in added[key])
    rows = [{"resource_provider_id": owner, member.key: key} for owner, key in new]
    if rows:
        tx.execute(sa.insert(row), rows)
    return [
        each
        for key, provider in owners.items()
        for each in entry.of_members(
            kind, provider.uuid, provider.root_uuid, added[key], removed[key]
        )
    ]

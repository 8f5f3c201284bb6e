"""Aggregates: sets of resource providers, nothing but a UUID each."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.model.entry import Entry, EntryType
from placement.model.resource_provider import ResourceProvider
from placement.objects import association, exact_match, resource_provider
from placement.objects.transaction import Transaction
from placement_foundation.database import storage


def ids_by_uuid(connection: sa.Connection, uuids: Iterable[str]) -> dict[str, int]:
    """Return the ids of aggregates by UUID; unknown ones are left out."""
    return exact_match.ids_by_string(connection, models.Aggregate.uuid, uuids)


def lock(tx: Transaction, uuids: Iterable[str]) -> None:
    """Lock aggregates, after any providers, until this transaction ends.

    Transactions that place consumers in one of them run one after the other then.
    """
    ids = ids_by_uuid(tx.connection, uuids).values()
    storage.lock_rows(tx.connection, models.Aggregate.id, ids)


def replace_all(
    tx: Transaction,
    provider: ResourceProvider,
    uuids: Sequence[str],
    *,
    bump: bool,
) -> int:
    """Make these the aggregates of a provider, and return its generation.

    :param bump: whether to increase the generation
    :raises Conflict: the database considers one equal to another spelling of its UUID
    :raises ConcurrentUpdate: another request has changed the provider
    """
    entries = replace_of_many(tx, {provider: uuids})
    resource_provider.record_change(tx, [provider], entries, bump=bump)
    return provider.generation + bump


def replace_of_many(
    tx: Transaction, wanted: Mapping[ResourceProvider, Collection[str]]
) -> list[Entry]:
    """Make these the aggregates of providers, without changing their generations.

    The caller records the returned entries of the journal.

    :raises Conflict: the database considers one equal to another spelling of its UUID
    """
    ids = ensure(tx, sorted(set().union(*wanted.values())))
    member, name = models.ResourceProviderAggregate.aggregate_id, models.Aggregate.uuid
    return association.replace(
        tx, EntryType.AGGREGATES_CHANGED, member, name, wanted, ids
    )


def ensure(tx: Transaction, uuids: Sequence[str]) -> dict[str, int]:
    """Return the ids of aggregates by UUID; create new ones."""
    ids = ids_by_uuid(tx.connection, uuids)
    new = sorted(set(uuids) - ids.keys())
    ids |= exact_match.insert_missing(tx.connection, models.Aggregate.uuid, new)
    for uuid in new:
        if uuid not in ids:
            raise errors.Conflict(
                f"Aggregate {uuid} exists already, in another spelling of its UUID."
            )
    return ids

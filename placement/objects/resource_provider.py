"""Resource providers: what has resources, and how they form trees."""

import functools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import orm

from placement import errors
from placement.db import models
from placement.model.entry import Entry, Node
from placement.model.resource_provider import UNKNOWN_PROVIDER, ResourceProvider
from placement.objects import exact_match
from placement.objects.transaction import Transaction
from placement_foundation.database import storage

UNKNOWN_FOR_DELETE = f"{UNKNOWN_PROVIDER} for delete"
OUT_OF_DATE = (
    "Resource provider's generation already changed. Please update the generation and "
    "try again."
)
RACE = (
    "Another thread concurrently updated the resource provider data. "
    "Please retry your update"
)
NO_PARENT = "parent provider UUID does not exist."


class Place(NamedTuple):
    """The place of a provider. A row of another service may lack a root, or a name."""

    root_id: int | None
    uuid: str
    name: str | None


Parent = orm.aliased(models.ResourceProvider)
Root = orm.aliased(models.ResourceProvider)


def stored_generation(
    row: type[models.Consumer | models.ResourceProvider],
) -> sa.ColumnElement[int]:
    """Return the generation of a row: 0 if it has none, as one of another service."""
    return sa.func.coalesce(row.generation, sa.literal_column("0"))


# Rows without a root come from another service, are incomplete, and not in the API.
PROVIDERS = (
    sa.select(
        models.ResourceProvider.id,
        models.ResourceProvider.uuid,
        models.ResourceProvider.name,
        stored_generation(models.ResourceProvider),
        Parent.uuid,
        Root.uuid,
        sa.func.coalesce(
            models.ResourceProvider.updated_at, models.ResourceProvider.created_at
        ),
        Root.id,
    )
    .join(Root, Root.id == models.ResourceProvider.root_provider_id)
    .outerjoin(Parent, Parent.id == models.ResourceProvider.parent_provider_id)
    .order_by(models.ResourceProvider.id)
)


_BY_UUID = PROVIDERS.where(models.ResourceProvider.uuid == sa.bindparam("uuid"))
_BY_IDS = PROVIDERS.where(
    models.ResourceProvider.id.in_(sa.bindparam("ids", expanding=True))
)


def get_by_uuid(
    connection: sa.Connection, uuid: str, *, missing: str = UNKNOWN_PROVIDER
) -> ResourceProvider:
    """Return a provider.

    :param missing: the message if there is none; may contain ``{uuid}``
    :raises NotFound: there is no such provider
    """
    rows: Iterable[Any] = ()
    if exact_match.is_searchable(uuid):
        rows = connection.execute(_BY_UUID, {"uuid": uuid})
    for row in rows:
        if row.uuid == uuid:
            return ResourceProvider(*row)
    raise errors.NotFound(missing.format(uuid=uuid))


def lock(
    tx: Transaction,
    provider: ResourceProvider,
    *,
    missing: str = UNKNOWN_PROVIDER,
) -> ResourceProvider:
    """Return a provider, locked as it is now until this transaction ends.

    :param missing: the message if it no longer exists; may contain ``{uuid}``
    :raises NotFound: it no longer exists
    """
    for locked in lock_by_ids(tx, [provider.id]):
        return locked
    raise errors.NotFound(missing.format(uuid=provider.uuid))


def lock_by_uuids(tx: Transaction, uuids: Iterable[str]) -> dict[str, ResourceProvider]:
    """Return providers by UUID, locked until this transaction ends.

    They are locked in the order of their ids. Unknown ones are left out.
    """
    column = models.ResourceProvider.uuid
    return lock_all(tx, exact_match.ids_by_string(tx.connection, column, uuids))


def lock_all(tx: Transaction, ids: Mapping[str, int]) -> dict[str, ResourceProvider]:
    """Lock providers as ``lock_by_uuids`` does.

    :param ids: their ids, by UUID
    """
    locked = lock_by_ids(tx, ids.values())
    return {provider.uuid: provider for provider in locked if provider.uuid in ids}


def lock_by_ids(tx: Transaction, ids: Iterable[int]) -> list[ResourceProvider]:
    """Return providers, locked until this transaction ends.

    They are locked, and returned, in the order of their ids.
    """
    listed = sorted(ids)
    storage.lock_rows(tx.connection, models.ResourceProvider.id, listed)
    # Only a statement that starts after the lock is granted sees what the previous
    # holder committed.
    rows = storage.select_each(tx.connection, _BY_IDS, "ids", listed)
    return [ResourceProvider(*row) for row in rows]


def list_places(
    connection: sa.Connection, names: Iterable[str], uuids: Iterable[str]
) -> list[Place]:
    """List the providers with some names and UUIDs.

    Names that the database considers equal to these count, too. A provider may occur
    twice.
    """
    row = models.ResourceProvider
    query = sa.select(row.root_provider_id, row.uuid, row.name).order_by(row.id)
    return [
        Place(*values)
        for column, texts in ((row.name, names), (row.uuid, uuids))
        for chunk in storage.chunks(sorted(filter(exact_match.is_searchable, texts)))
        for values in connection.execute(query.where(column.in_(chunk)))
    ]


def node_of(provider: ResourceProvider) -> Node:
    """Return the place of a provider, for the journal."""
    return Node(provider.name, provider.parent_uuid, provider.root_uuid)


def check_generation(
    provider: ResourceProvider, expected: int, complaint: str = OUT_OF_DATE
) -> None:
    """Check that a caller has seen the last change of a provider.

    :param expected: the generation that the caller has seen
    :raises ConcurrentUpdate: the generation has changed
    """
    if provider.generation != expected:
        raise errors.ConcurrentUpdate(complaint)


def record_change(
    tx: Transaction,
    providers: Iterable[ResourceProvider],
    entries: Iterable[Entry],
    *,
    bump: bool,
) -> None:
    """Record that providers, or what belongs to them, have changed.

    Code that changes a provider, or its inventories, traits, aggregates or
    allocations, calls this in the same transaction.

    :param entries: what has changed, for the journal
    :param bump: whether clients see the change as a new generation
    :raises ConcurrentUpdate: a generation is no longer the one in the values
    """
    changed = list(providers)
    roots = [provider.root_id for provider in changed]
    generations = {each.uuid: each.generation + bump for each in changed}
    if bump:
        known = [(provider.id, provider.generation) for provider in changed]
        increase_generations(tx, models.ResourceProvider, known, RACE)
    tx.record_trees(roots, entries, generations)


def increase_generations(
    tx: Transaction,
    row: type[models.Consumer | models.ResourceProvider],
    known: Iterable[tuple[int, int]],
    complaint: str,
) -> None:
    """Add one to the generation of each row.

    :param known: the id of each, and the generation that it had
    :param complaint: the message if another request has changed one of them
    :raises ConcurrentUpdate: a row has another generation
    """
    for chunk in storage.chunks(known):
        parameters = {"ids": [row_id for row_id, _ in chunk], "known": chunk}
        if tx.connection.execute(_increase(row), parameters).rowcount != len(chunk):
            raise errors.ConcurrentUpdate(complaint)


@functools.cache
def _increase(row: type[models.Consumer | models.ResourceProvider]) -> sa.Update:
    """Return the statement that changes rows with some ``ids``, if ``known``."""
    number = stored_generation(row)
    both = sa.tuple_(row.id, number)
    return (
        sa.update(row)
        # MariaDB uses the primary key for the first condition only.
        .where(row.id.in_(sa.bindparam("ids", expanding=True)))
        .where(both.in_(sa.bindparam("known", expanding=True)))
        .values(generation=number + 1)
    )

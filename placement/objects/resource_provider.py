"""Resource providers: who has resources, and how they form trees."""

import dataclasses
import datetime
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.orm import Session

from placement import errors
from placement.db import models
from placement.objects import lookup

UNKNOWN = "No resource provider with uuid {uuid} found"
RACE = (
    "Another thread concurrently updated the resource provider data. "
    "Please retry your update"
)


@dataclasses.dataclass(frozen=True, slots=True)
class ResourceProvider:
    """A resource provider as the ledger knows it; ``modified`` is in UTC."""

    id: int
    uuid: str
    name: str
    generation: int
    parent_provider_uuid: str | None
    root_provider_uuid: str
    modified: datetime.datetime | None


Parent = orm.aliased(models.ResourceProvider)
Root = orm.aliased(models.ResourceProvider)

# Rows without a root are foreign, half-made and not part of the API.
PROVIDERS = (
    sa.select(
        models.ResourceProvider.id,
        models.ResourceProvider.uuid,
        models.ResourceProvider.name,
        models.ResourceProvider.generation,
        Parent.uuid,
        Root.uuid,
        sa.func.coalesce(
            models.ResourceProvider.updated_at, models.ResourceProvider.created_at
        ),
    )
    .join(Root, Root.id == models.ResourceProvider.root_provider_id)
    .outerjoin(Parent, Parent.id == models.ResourceProvider.parent_provider_id)
    .order_by(models.ResourceProvider.id)
)


def list_where(
    session: Session, *conditions: sa.ColumnElement[bool]
) -> list[ResourceProvider]:
    """Return the providers that meet all conditions, in the order of their ids."""
    rows: Iterable[Any] = session.connection().execute(PROVIDERS.where(*conditions))
    return [ResourceProvider(*row) for row in rows]


def get_by_uuid(
    session: Session, uuid: str, *, missing: str = UNKNOWN
) -> ResourceProvider:
    """Return a provider.

    :param missing: what to say if there is none; may contain ``{uuid}``
    :raises NotFound: there is no such provider
    """
    if lookup.is_searchable(uuid):
        for provider in list_where(session, models.ResourceProvider.uuid == uuid):
            if provider.uuid == uuid:
                return provider
    raise errors.NotFound(missing.format(uuid=uuid))


def lock(
    session: Session, provider: ResourceProvider, *, missing: str = UNKNOWN
) -> ResourceProvider:
    """Return a provider as it is now, and stays until this transaction ends.

    :param missing: what to say if it is gone; may contain ``{uuid}``
    :raises NotFound: it is gone
    """
    for locked in _lock_by_ids(session, [provider.id]):
        return locked
    raise errors.NotFound(missing.format(uuid=provider.uuid))


def lock_by_uuids(
    session: Session, uuids: Iterable[str]
) -> dict[str, ResourceProvider]:
    """Return providers that nobody else changes until this transaction ends, by UUID.

    They are locked in the order of their ids. Unknown ones are left out.
    """
    ids = lookup.ids_by_text(
        session, models.ResourceProvider.id, models.ResourceProvider.uuid, uuids
    )
    return {provider.uuid: provider for provider in _lock_by_ids(session, ids.values())}


def _lock_by_ids(session: Session, ids: Iterable[int]) -> list[ResourceProvider]:
    providers = []
    for chunk in lookup.chunks(sorted(ids)):
        condition = models.ResourceProvider.id.in_(chunk)
        _lock(session, condition)
        # Only a statement that starts after the lock is granted sees what the
        # former holder committed.
        providers += list_where(session, condition)
    return providers


def _lock(session: Session, condition: sa.ColumnElement[bool]) -> None:
    """Lock rows in id order. It allows others to add rows that refer to them."""
    query = sa.select(models.ResourceProvider.id).where(condition)
    query = query.order_by(models.ResourceProvider.id).with_for_update(key_share=True)
    session.connection().execute(query).all()


def record_change(
    session: Session, providers: Iterable[ResourceProvider], *, bump: bool
) -> None:
    """Take note that providers, or what belongs to them, have changed.

    Whoever changes a provider, or its inventories, traits, aggregates or allocations
    calls this in the same transaction.

    :param bump: whether clients are told by a new generation
    :raises ConcurrentUpdate: a generation is no longer the one in the values
    """
    if bump:
        bump_generations(session, providers)


def bump_generations(session: Session, providers: Iterable[ResourceProvider]) -> None:
    """Add one to the generation of each provider.

    :raises ConcurrentUpdate: a generation is no longer the one in the values
    """
    row = models.ResourceProvider
    for chunk in lookup.chunks(providers):
        known = [(provider.id, provider.generation) for provider in chunk]
        update = (
            sa.update(row)
            # MariaDB uses the primary key for the first condition only.
            .where(row.id.in_([provider.id for provider in chunk]))
            .where(sa.tuple_(row.id, row.generation).in_(known))
            .values(generation=row.generation + 1)
        )
        if session.connection().execute(update).rowcount != len(known):
            raise errors.ConcurrentUpdate(RACE)

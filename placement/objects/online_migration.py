"""Finding and adding the data that old releases left out."""

from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.objects.transaction import Transaction
from placement_foundation.database import storage


def has_providers_without_root(connection: sa.Connection) -> bool:
    """Return whether there is a provider that no query can see, for lack of a root."""
    query = sa.select(models.ResourceProvider.id).where(
        models.ResourceProvider.root_provider_id.is_(None)
    )
    return connection.execute(query.limit(1)).first() is not None


def set_root_provider_ids(tx: Transaction, limit: int) -> int:
    """Make providers without a root their own root; return how many were changed.

    Such providers are from the time before trees, when none had a parent.
    """
    rootless = models.ResourceProvider.root_provider_id.is_(None)
    first = (
        sa.select(models.ResourceProvider.id)
        .where(rootless)
        .order_by(models.ResourceProvider.id)
        .limit(limit)
        .subquery()
    )
    last = tx.connection.scalar(sa.select(sa.func.max(first.c.id)))
    if last is None:
        return 0
    change = (
        sa.update(models.ResourceProvider)
        .where(rootless, models.ResourceProvider.id <= last)
        .values(root_provider_id=models.ResourceProvider.id)
    )
    tx.record_all()
    return tx.connection.execute(change).rowcount


def count_incomplete_consumers(connection: sa.Connection) -> int:
    """Return how many consumers have allocations but no record."""
    missing = _consumers_without_record().subquery()
    return connection.scalars(sa.select(sa.func.count()).select_from(missing)).one()


def create_incomplete_consumers(
    tx: Transaction, limit: int, *, project: str, user: str
) -> int:
    """Record consumers that only allocations mention; return how many were added.

    Their owners are recorded even if there are none, as by OpenStack Placement.

    :param project: the external id of the project to which they will belong
    :param user: the external id of the user to whom they will belong
    """
    owner = {
        "project_id": _id_of(tx, models.Project, project),
        "user_id": _id_of(tx, models.User, user),
    }
    missing = _consumers_without_record().order_by(models.Allocation.consumer_id)
    uuids = tx.connection.scalars(missing.limit(limit)).all()
    if not uuids:
        return 0
    rows = [{"uuid": uuid, "generation": 0, **owner} for uuid in uuids]
    storage.insert_missing(tx.connection, models.Consumer, rows)
    tx.record_all()
    return len(uuids)


def _consumers_without_record() -> sa.Select[Any]:
    return (
        sa.select(models.Allocation.consumer_id)
        .outerjoin(models.Consumer, models.OF_CONSUMER)
        .where(models.Consumer.id.is_(None))
        .distinct()
    )


def _id_of(
    tx: Transaction, model: type[models.Project | models.User], external_id: str
) -> int:
    """Return the id of an owner, who may be stored in what MySQL deems the same."""
    storage.insert_missing(tx.connection, model, [{"external_id": external_id}])
    query = sa.select(model.id).where(model.external_id == external_id)
    return tx.connection.scalars(query).one()

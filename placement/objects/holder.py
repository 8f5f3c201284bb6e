"""Holders: the largest consumers of a provider's inventories."""

from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.model.allocation import Holder

# How many are listed for one inventory.
MOST = 10
# How many rows are fetched at a time.
BATCH = 2_000


def list_largest(
    connection: sa.Connection,
    provider_uuids: Collection[str],
    class_names: Collection[str],
    ignored: Collection[str] = (),
) -> dict[tuple[str, str], list[Holder]]:
    """Return the holders of some providers' inventories, the largest first.

    :param ignored: consumers that are left out
    :returns: keyed by UUID of the provider and name of the class
    """
    held, consumer = models.Allocation, models.Consumer
    provider, kind = models.ResourceProvider, models.ConsumerType
    query = (
        sa.select(
            provider.uuid,
            models.ResourceClass.name,
            held.consumer_id,
            held.used,
            kind.name,
            models.Project.external_id,
        )
        .select_from(held)
        .join(provider, provider.id == held.resource_provider_id)
        .join(models.ResourceClass, models.ResourceClass.id == held.resource_class_id)
        .outerjoin(consumer, consumer.uuid == held.consumer_id)
        .outerjoin(kind, kind.id == consumer.consumer_type_id)
        .outerjoin(models.Project, models.Project.id == consumer.project_id)
        .where(provider.uuid.in_(sorted(provider_uuids)))
        .where(models.ResourceClass.name.in_(sorted(class_names)))
        .order_by(held.used.desc(), held.consumer_id, held.id)
    )
    rows: Iterable[Any] = connection.execute(
        query, execution_options={"yield_per": BATCH}
    )
    holders: dict[tuple[str, str], list[Holder]] = {}
    for provider_uuid, class_name, *holding in rows:
        listed = holders.setdefault((provider_uuid, class_name), [])
        if len(listed) < MOST and holding[0] not in ignored:
            listed.append(Holder(*holding))
    return holders

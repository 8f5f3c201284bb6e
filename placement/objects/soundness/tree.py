"""Parents and roots of providers: where they lead, and where they should."""

from collections.abc import Mapping

import sqlalchemy as sa

from placement.db import models
from placement_foundation.database import storage

Provider = models.ResourceProvider
# How far up a parent is looked for; no host is nested as deep.
DEEPEST = 100


def set_roots(connection: sa.Connection) -> int:
    """Give each provider the root that its parents lead to, where they lead to one."""
    rows = connection.execute(
        sa.select(Provider.id, Provider.parent_provider_id, Provider.root_provider_id)
    ).all()
    parents = {row.id: row.parent_provider_id for row in rows}
    wrong = [
        {"of_id": row.id, "root": root}
        for row in rows
        if (root := _root_of(row.id, parents)) not in (None, row.root_provider_id)
    ]
    update = (
        sa.update(Provider)
        .where(Provider.id == sa.bindparam("of_id"))
        .values(root_provider_id=sa.bindparam("root"))
    )
    for chunk in storage.chunks(wrong):
        connection.execute(update, chunk)
    return len(wrong)


def _root_of(key: int, parents: Mapping[int, int | None]) -> int | None:
    """Return the root that the parents lead to; None if they lead to none."""
    for _ in range(DEEPEST):
        if key not in parents:
            return None
        above = parents[key]
        if above is None:
            return key
        key = above
    return None


def list_circling(connection: sa.Connection) -> list[int]:
    """Return the ids of the providers that are below themselves."""
    nested = sa.select(Provider.id, Provider.parent_provider_id).where(
        Provider.parent_provider_id.is_not(None)
    )
    parents: dict[int, int | None] = {
        row.id: row.parent_provider_id for row in connection.execute(nested)
    }
    for top in {above for above in parents.values() if above is not None}:
        parents.setdefault(top, None)
    return sorted(key for key in parents if _root_of(key, parents) is None)

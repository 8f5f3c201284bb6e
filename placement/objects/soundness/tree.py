"""Parents and roots of providers: where they lead, and where they should."""

import sqlalchemy as sa
from sqlalchemy import orm

from placement.db import models
from placement.model import entry
from placement.model.entry import Node
from placement.objects.transaction import Transaction
from placement_foundation.database import storage

Provider = models.ResourceProvider
Child, Parent = orm.aliased(Provider), orm.aliased(Provider)
Root, Old = orm.aliased(Provider), orm.aliased(Provider)

# Each provider to which a root leads, with that root.
_below = (
    sa.select(Provider.id, Provider.id.label("root_id"))
    .where(Provider.parent_provider_id.is_(None))
    .cte(recursive=True)
)
_below = _below.union_all(
    sa.select(Child.id, _below.c.root_id).join(
        _below, Child.parent_provider_id == _below.c.id
    )
)
_MISPLACED = (
    sa.select(
        Provider.id,
        Provider.uuid,
        Provider.name,
        Provider.generation,
        Parent.uuid.label("parent"),
        Old.uuid.label("root_before"),
        Root.uuid.label("root"),
        Root.id.label("root_id"),
    )
    .join(_below, _below.c.id == Provider.id)
    .join(Root, Root.id == _below.c.root_id)
    .outerjoin(Parent, Parent.id == Provider.parent_provider_id)
    .outerjoin(Old, Old.id == Provider.root_provider_id)
    .where(Provider.root_provider_id.is_distinct_from(Root.id))
    .order_by(Provider.id)
)
_SET_ROOT = (
    sa.update(Provider)
    .where(Provider.id == sa.bindparam("of_id"))
    .values(root_provider_id=sa.bindparam("root"))
)


def set_roots(tx: Transaction) -> int:
    """Give each provider the root that its parents lead to, where they lead to one."""
    moved = tx.connection.execute(_MISPLACED).all()
    for chunk in storage.chunks(moved):
        roots = [{"of_id": row.id, "root": row.root_id} for row in chunk]
        tx.connection.execute(_SET_ROOT, roots)
    tx.record_trees(
        {row.root_id for row in moved},
        [
            entry.of_provider(
                row.uuid,
                Node(row.name, row.parent, row.root_before),
                Node(row.name, row.parent, row.root),
            )
            for row in moved
        ],
        {row.uuid: row.generation for row in moved},
    )
    return len(moved)


# Each provider that has a parent, with each of its ancestors. One that is there already
# is not added again, so a circle ends.
_above = (
    sa.select(Provider.id.label("start"), Provider.parent_provider_id.label("ancestor"))
    .where(Provider.parent_provider_id.is_not(None))
    .cte(recursive=True)
)
_above = _above.union(
    sa.select(_above.c.start, Provider.parent_provider_id)
    .join(Provider, Provider.id == _above.c.ancestor)
    .where(Provider.parent_provider_id.is_not(None))
)
CIRCLING = (
    sa.select(Provider.uuid, Provider.name)
    .where(
        Provider.id.in_(
            sa.select(_above.c.start).where(_above.c.start == _above.c.ancestor)
        )
    )
    .order_by(Provider.id)
)

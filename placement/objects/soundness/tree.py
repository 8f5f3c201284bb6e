"""Parents and roots of providers: where they lead, and where they should."""

import sqlalchemy as sa
from sqlalchemy import orm

from placement.db import models
from placement.model import entry
from placement.model.entry import Node
from placement.objects.transaction import Transaction

Provider = models.ResourceProvider
Parent, Root = orm.aliased(Provider), orm.aliased(Provider)
Old = orm.aliased(Provider)

# Each provider, with itself and all that it is below. One that is there already is not
# added again, so a circle ends.
_above = sa.select(Provider.id, Provider.id.label("ancestor")).cte(recursive=True)
_above = _above.union(
    sa.select(_above.c.id, Provider.parent_provider_id)
    .join(Provider, Provider.id == _above.c.ancestor)
    .where(Provider.parent_provider_id.is_not(None))
)
# Providers whose parents are below them.
CIRCLING = sa.select(Provider.uuid, Provider.name).join(
    _above,
    (_above.c.id == Provider.parent_provider_id) & (_above.c.ancestor == Provider.id),
)
# Providers whose parents lead to another root than the one that is stored.
MISPLACED = (
    sa.select(Provider.uuid, Provider.name, Old.uuid.label("root"))
    .join(_above, _above.c.id == Provider.id)
    .join(Root, (Root.id == _above.c.ancestor) & Root.parent_provider_id.is_(None))
    .outerjoin(Old, Old.id == Provider.root_provider_id)
    .where(Provider.root_provider_id.is_distinct_from(Root.id))
)
_WITH_ROOTS = (
    MISPLACED.outerjoin(Parent, Parent.id == Provider.parent_provider_id)
    .add_columns(
        Provider.id,
        Provider.generation,
        Parent.uuid.label("parent"),
        Root.id.label("root_id"),
        Root.uuid.label("new_root"),
    )
    .order_by(Provider.id)
)
_SET_ROOT = (
    sa.update(Provider)
    .where(Provider.id == sa.bindparam("of_id"))
    .values(root_provider_id=sa.bindparam("root"))
)


def set_roots(tx: Transaction) -> None:
    """Give each provider the root that its parents lead to, where they lead to one."""
    moved = tx.connection.execute(_WITH_ROOTS).all()
    roots = [{"of_id": row.id, "root": row.root_id} for row in moved]
    tx.connection.execute(_SET_ROOT, roots)
    tx.record_trees(
        {row.root_id for row in moved},
        [
            entry.of_provider(
                row.uuid,
                Node(row.name, row.parent, row.root),
                Node(row.name, row.parent, row.new_root),
            )
            for row in moved
        ],
        {row.uuid: row.generation for row in moved},
    )

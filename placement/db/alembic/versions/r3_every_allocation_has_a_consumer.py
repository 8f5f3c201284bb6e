"""Make sure that each allocation has a consumer."""

import sqlalchemy as sa
from alembic import op, util

revision = "b5c396305c25"
down_revision = "611cd6dffd7b"


def upgrade() -> None:
    allocations = sa.table("allocations", sa.column("consumer_id"))
    consumers = sa.table("consumers", sa.column("uuid"))
    orphaned = sa.select(sa.literal(1)).where(
        ~sa.exists().where(consumers.c.uuid == allocations.c.consumer_id)
    )
    if op.get_bind().scalar(orphaned.select_from(allocations).limit(1)):
        raise util.CommandError(
            "There is at least one allocation record which is missing a consumer "
            "record. Run the command `placement-manage db online_data_migrations`, "
            "then migrate again."
        )

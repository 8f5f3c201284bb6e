"""Make sure that each resource provider has a root."""

import sqlalchemy as sa
from alembic import op, util

revision = "611cd6dffd7b"
down_revision = "b4ed3a175331"


def upgrade() -> None:
    providers = sa.table("resource_providers", sa.column("root_provider_id"))
    rootless = sa.select(sa.literal(1)).where(providers.c.root_provider_id.is_(None))
    if op.get_bind().scalar(rootless.limit(1)):
        raise util.CommandError(
            "There is at least one resource provider table record which is missing "
            "its root provider id. Run the command `placement-manage db "
            "online_data_migrations`, then migrate again."
        )

"""Create the table of leases: of claims that end by themselves."""

import sqlalchemy as sa
from alembic import op

from placement_foundation.database import step

revision = "c7a41e60b9d3"
down_revision = "8e41b7c2d905"


def upgrade() -> None:
    op.create_table(
        "leases",
        sa.Column("consumer_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        # MariaDB commits each statement: an earlier attempt may have ended here.
        if_not_exists=True,
    )
    step.create_index("leases_expires_at_idx", "leases", ["expires_at"])

"""Create the table that records which trees have changed; its rows come later."""

import sqlalchemy as sa
from alembic import op

revision = "5d1f0c9a7e42"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "forest_stamps",
        sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("changes", sa.String(500), nullable=False),
        # MariaDB commits each statement: an earlier attempt may have ended here.
        if_not_exists=True,
    )

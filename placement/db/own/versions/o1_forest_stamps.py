"""Create the table that records which trees have changed."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "5d1f0c9a7e42"
down_revision = None

# The shards of the trees, and one more for the names.
ROWS = 257


def upgrade() -> None:
    stamps = op.create_table(
        "forest_stamps",
        sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("changes", sa.String(500), nullable=False),
    )
    rows = [
        {"shard": shard, "changes": f"{secrets.token_hex(6)};"} for shard in range(ROWS)
    ]
    op.bulk_insert(stamps, rows)

"""Let a lease be one of a UUID, not only of an id that SQLite may use again."""

import sqlalchemy as sa
from alembic import op

from placement_foundation.database import step

revision = "91c4f7e20ab6"
down_revision = "2d9e6b13f7a8"

# Each statement can be repeated: MariaDB commits it, and the next one may not come.
CARRY_OVER = """
    INSERT INTO consumer_leases (consumer_id, consumer_uuid, expires_at)
    SELECT leases.consumer_id, COALESCE(consumers.uuid, ''), leases.expires_at
    FROM leases LEFT JOIN consumers ON consumers.id = leases.consumer_id
    WHERE leases.consumer_id NOT IN (SELECT consumer_id FROM consumer_leases)
    AND (consumers.id IS NOT NULL OR leases.consumer_id = 0)
"""


def upgrade() -> None:
    op.create_table(
        "consumer_leases",
        sa.Column("consumer_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("consumer_uuid", sa.String(36), nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        if_not_exists=True,
    )
    step.create_index(
        "consumer_leases_expires_at_idx", "consumer_leases", ["expires_at"]
    )
    if sa.inspect(op.get_bind()).has_table("leases"):
        op.execute(CARRY_OVER)
        op.drop_table("leases")

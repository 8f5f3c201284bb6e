"""Let one process at a time check all hosts."""

import sqlalchemy as sa
from alembic import op

from placement_foundation.database import column

revision = "e2b94a7c30f1"
down_revision = "c7e80b15d64f"


def upgrade() -> None:
    op.create_table(
        "watches",
        sa.Column("created_at", column.moment(), nullable=False),
        sa.Column("updated_at", column.moment(), nullable=True),
        sa.Column("subject", column.word(255), primary_key=True),
        sa.Column("holder", sa.String(36), nullable=False),
        sa.Column("next_at", column.moment(), nullable=False),
        sa.Column("slots_overused", sa.Integer, nullable=False),
        mysql_charset="utf8mb4",
        if_not_exists=True,
    )

"""Create the table that records what the owners of hardware declared."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from placement_foundation.database import step

revision = "c41f7d0b92e6"
down_revision = "c7a41e60b9d3"

# MySQL's TEXT has 64 KiB.
LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT, "mysql", "mariadb")
OWNERS = "declarations_owner_idx"


def upgrade() -> None:
    # MariaDB commits each statement: an earlier attempt may have ended anywhere.
    op.create_table(
        "declarations",
        sa.Column("provider_uuid", sa.String(36), primary_key=True),
        sa.Column("owner", sa.String(64), primary_key=True),
        sa.Column("document", LONG_TEXT, nullable=False),
        if_not_exists=True,
    )
    step.create_index(OWNERS, "declarations", ["owner"])

"""Create the table of what operators say of the cloud, such as names."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "2d9e6b13f7a8"
down_revision = "c41f7d0b92e6"

# MySQL's TEXT has 64 KiB.
LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT, "mysql", "mariadb")


def upgrade() -> None:
    op.create_table(
        "notes",
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("owner", sa.String(64), primary_key=True),
        sa.Column("document", LONG_TEXT, nullable=False),
        if_not_exists=True,
    )

"""Remove the table of watches: the watch is a claim."""

from alembic import op

revision = "83b6d20f5ea1"
down_revision = "1d8f36c0a7b5"


def upgrade() -> None:
    op.drop_table("watches", if_exists=True)

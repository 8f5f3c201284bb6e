"""Record why a lease is not as it should be."""

import sqlalchemy as sa
from alembic import op

from placement_foundation.database import column

revision = "c7e80b15d64f"
down_revision = "a41c6f2e93d7"


def upgrade() -> None:
    op.add_column("leases", sa.Column("status_reason", column.text(), nullable=True))

"""Record why a lease is not as it should be."""

import sqlalchemy as sa
from alembic import op

from placement_foundation.database import column

revision = "c7e80b15d64f"
down_revision = "a41c6f2e93d7"


REASON = "status_reason"


def upgrade() -> None:
    columns = sa.inspect(op.get_bind()).get_columns("leases")
    # MariaDB commits each statement: an earlier attempt may have ended after this one.
    if REASON not in {each["name"] for each in columns}:
        op.add_column("leases", sa.Column(REASON, column.text(), nullable=True))

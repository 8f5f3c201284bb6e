"""Create the tables, as the models describe them.

Later revisions change what an earlier release created; here they find nothing to do.
"""

from alembic import op

from placement_foundation.database import step
from placement_reservations.db import models

revision = "5f0c2d81a9e4"
down_revision = None


def upgrade() -> None:
    for table in models.Base.metadata.sorted_tables:
        step.create_table(op.get_bind(), table)

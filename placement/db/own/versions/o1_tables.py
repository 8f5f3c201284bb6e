"""Create the tables of our own, as the models describe them; their rows come later.

Later revisions change what an earlier release created; here they find nothing to do.
"""

from alembic import op

from placement.db import models
from placement_foundation.database import step

revision = "4f0b8d61e3c7"
down_revision = None


def upgrade() -> None:
    # MariaDB commits each statement: an earlier attempt may have ended anywhere.
    for table in models.OWN.sorted_tables:
        step.create_table(op.get_bind(), table)

"""Create the tables of nodes and of their traits, as the models describe them."""

from alembic import op

from placement_foundation.database import step
from placement_nodes.db import models

revision = "5c1d0e7a94b2"
down_revision = None


def upgrade() -> None:
    # MariaDB commits each statement: an earlier attempt may have ended anywhere.
    for table in models.Base.metadata.sorted_tables:
        step.create_table(op.get_bind(), table)

"""Let one process at a time check all hosts."""

from alembic import op

from placement_foundation.database import step
from placement_reservations.db import models

revision = "e2b94a7c30f1"
down_revision = "c7e80b15d64f"


def upgrade() -> None:
    step.create_table(op.get_bind(), models.Base.metadata.tables["watches"])

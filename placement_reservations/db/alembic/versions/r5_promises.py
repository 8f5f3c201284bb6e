"""Record what keeps hosts and reservations from slots, and what is being cleaned."""

import sqlalchemy as sa
from alembic import op

from placement_foundation.database import column, step
from placement_reservations.db import models

revision = "1d8f36c0a7b5"
down_revision = "e2b94a7c30f1"

# The lack of a reservation that lacked something before there was a column for it.
LACKS = "Some of its slots are on hosts that cannot keep them."


def upgrade() -> None:
    step.add_column("computehosts", "limits", column.text())
    step.add_column("reservations", "lacks", column.text())
    if step.has_column("reservations", "missing_resources"):
        reservations = sa.table(
            "reservations",
            sa.column("lacks", sa.Text),
            sa.column("missing_resources", sa.Boolean),
        )
        lacking = sa.update(reservations).where(reservations.c.missing_resources)
        op.execute(lacking.values(lacks=LACKS))
        op.drop_column("reservations", "missing_resources")
    if step.has_column("leases", "degraded"):
        op.drop_column("leases", "degraded")
    step.create_table(op.get_bind(), models.Base.metadata.tables["cleanings"])

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
    add("computehosts", "limits")
    add("reservations", "lacks")
    if has("reservations", "missing_resources"):
        reservations = sa.table(
            "reservations",
            sa.column("lacks", sa.Text),
            sa.column("missing_resources", sa.Boolean),
        )
        lacking = sa.update(reservations).where(reservations.c.missing_resources)
        op.execute(lacking.values(lacks=LACKS))
        op.drop_column("reservations", "missing_resources")
    if has("leases", "degraded"):
        op.drop_column("leases", "degraded")
    step.create_table(op.get_bind(), models.Base.metadata.tables["cleanings"])


def add(table: str, name: str) -> None:
    # MariaDB commits each statement: an earlier attempt may have ended after this one.
    if not has(table, name):
        op.add_column(table, sa.Column(name, column.text(), nullable=True))


def has(table: str, name: str) -> bool:
    columns = sa.inspect(op.get_bind()).get_columns(table)
    return name in {each["name"] for each in columns}

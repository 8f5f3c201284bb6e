"""Record what keeps hosts and reservations from slots, and what is being cleaned."""

import sqlalchemy as sa
from alembic import op

from placement_foundation.database import column, step

revision = "1d8f36c0a7b5"
down_revision = "e2b94a7c30f1"

# What a reservation lacks, if it lacked something when there was no column for it.
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
    op.create_table(
        "cleanings",
        sa.Column("created_at", column.moment(), nullable=False),
        sa.Column("updated_at", column.moment(), nullable=True),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("computehost_id", sa.Integer, nullable=False),
        sa.Column("end_date", column.moment(), nullable=False),
        sa.Column("vcpus", sa.Integer, nullable=False),
        sa.Column("memory_mb", sa.Integer, nullable=False),
        sa.Column("disk_gb", sa.Integer, nullable=False),
        sa.Column("slots", sa.Integer, nullable=False),
        sa.ForeignKeyConstraint(
            ["computehost_id"], ["computehosts.id"], ondelete="CASCADE"
        ),
        mysql_charset="utf8mb4",
        if_not_exists=True,
    )
    step.create_index("cleanings_end_date_idx", "cleanings", ["end_date"])


def add(table: str, name: str) -> None:
    # MariaDB commits each statement: an earlier attempt may have ended after this one.
    if not has(table, name):
        op.add_column(table, sa.Column(name, column.text(), nullable=True))


def has(table: str, name: str) -> bool:
    columns = sa.inspect(op.get_bind()).get_columns(table)
    return name in {each["name"] for each in columns}

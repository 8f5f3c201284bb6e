"""Add consumer types."""

import sqlalchemy as sa
from alembic import op

revision = "422ece571366"
down_revision = "b5c396305c25"

COLUMN = "consumer_type_id"
INDEX = "consumers_consumer_type_id_idx"
FOREIGN_KEY = "consumers_consumer_type_id_fkey"


def upgrade() -> None:
    # MySQL commits each statement, so a migration that was interrupted may have done
    # any part of this.
    is_partial = op.get_bind().dialect.name in ("mysql", "mariadb")
    op.create_table(
        "consumer_types",
        sa.Column("created_at", sa.DateTime, nullable=True),
        sa.Column("updated_at", sa.DateTime, nullable=True),
        sa.Column("id", sa.Integer, primary_key=True, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.UniqueConstraint("name", name="uniq_consumer_types0name"),
        if_not_exists=is_partial,
    )
    inspector = sa.inspect(op.get_bind())
    there = {
        each["name"]
        for some in (
            inspector.get_columns,
            inspector.get_indexes,
            inspector.get_foreign_keys,
        )
        for each in some("consumers")
    }
    # SQLite cannot add a constraint to a table: there, the batch copies the table.
    with op.batch_alter_table("consumers") as consumers:
        if COLUMN not in there:
            consumers.add_column(sa.Column(COLUMN, sa.Integer, nullable=True))
        if INDEX not in there:
            consumers.create_index(INDEX, [COLUMN])
        if FOREIGN_KEY not in there:
            consumers.create_foreign_key(
                FOREIGN_KEY, "consumer_types", [COLUMN], ["id"]
            )

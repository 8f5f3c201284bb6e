"""Create the tables of nodes and of their traits."""

import sqlalchemy as sa
from alembic import op

from placement_foundation.database import column, step

revision = "5c1d0e7a94b2"
down_revision = None


def upgrade() -> None:
    # MariaDB commits each statement: an earlier attempt may have ended anywhere.
    op.create_table(
        "nodes",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uuid", column.word(36), nullable=False),
        sa.Column("name", column.word(255)),
        sa.Column("driver", column.word(255), nullable=False),
        sa.Column("resource_class", column.word(80)),
        sa.Column("properties", column.Document, nullable=False),
        sa.Column("extra", column.Document, nullable=False),
        sa.Column("driver_info", column.Document, nullable=False),
        sa.Column("instance_info", column.Document, nullable=False),
        sa.Column("interfaces", column.Document, nullable=False),
        sa.Column("instance_uuid", column.word(36)),
        sa.Column("chassis_uuid", column.word(36)),
        sa.Column("maintenance", sa.Boolean, nullable=False),
        sa.Column("maintenance_reason", column.text()),
        sa.Column("power_state", column.word(15)),
        sa.Column("target_power_state", column.word(15)),
        sa.Column("provision_state", column.word(15), nullable=False),
        sa.Column("target_provision_state", column.word(15)),
        sa.Column("provision_updated_at", column.moment()),
        sa.Column("last_error", column.text()),
        sa.Column("reservation", column.word(255)),
        sa.Column("created_at", column.moment(), nullable=False),
        sa.Column("updated_at", column.moment()),
        sa.UniqueConstraint("uuid", name="uniq_nodes0uuid"),
        sa.UniqueConstraint("name", name="uniq_nodes0name"),
        sa.UniqueConstraint("instance_uuid", name="uniq_nodes0instance_uuid"),
        mysql_engine="InnoDB",
        if_not_exists=True,
    )
    op.create_table(
        "node_traits",
        sa.Column(
            "node_id",
            sa.Integer,
            sa.ForeignKey("nodes.id", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("trait", column.word(255), primary_key=True),
        mysql_engine="InnoDB",
        if_not_exists=True,
    )
    step.create_index("node_traits_trait_idx", "node_traits", ["trait"])

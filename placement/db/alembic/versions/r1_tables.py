"""Create the tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from placement_foundation.database import step

revision = "b4ed3a175331"
down_revision = None


def upgrade() -> None:
    create_providers()
    create_inventories()
    create_aggregates()
    create_traits()
    create_consumers()


def create_providers() -> None:
    create_table(
        "resource_providers",
        auto_id(),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(200), nullable=True),
        sa.Column("generation", sa.Integer, nullable=True),
        sa.Column("root_provider_id", sa.Integer, nullable=True),
        sa.Column("parent_provider_id", sa.Integer, nullable=True),
        # MySQL numbers foreign keys in this order.
        sa.ForeignKeyConstraint(["parent_provider_id"], ["resource_providers.id"]),
        sa.ForeignKeyConstraint(["root_provider_id"], ["resource_providers.id"]),
        sa.UniqueConstraint("uuid", name="uniq_resource_providers0uuid"),
        sa.UniqueConstraint("name", name="uniq_resource_providers0name"),
        sa.Index("resource_providers_name_idx", "name"),
        sa.Index("resource_providers_parent_provider_id_idx", "parent_provider_id"),
        sa.Index("resource_providers_root_provider_id_idx", "root_provider_id"),
        sa.Index("resource_providers_uuid_idx", "uuid"),
    )


def create_inventories() -> None:
    create_table(
        "resource_classes",
        auto_id(),
        sa.Column("name", sa.String(255), nullable=False),
        sa.UniqueConstraint("name", name="uniq_resource_classes0name"),
    )
    create_table(
        "inventories",
        auto_id(),
        sa.Column("resource_provider_id", sa.Integer, nullable=False),
        sa.Column("resource_class_id", sa.Integer, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("reserved", sa.Integer, nullable=False),
        sa.Column("min_unit", sa.Integer, nullable=False),
        sa.Column("max_unit", sa.Integer, nullable=False),
        sa.Column("step_size", sa.Integer, nullable=False),
        sa.Column("allocation_ratio", sa.Float, nullable=False),
        sa.UniqueConstraint(
            "resource_provider_id",
            "resource_class_id",
            name="uniq_inventories0resource_provider_resource_class",
        ),
        sa.Index("inventories_resource_class_id_idx", "resource_class_id"),
        sa.Index("inventories_resource_provider_id_idx", "resource_provider_id"),
        sa.Index(
            "inventories_resource_provider_resource_class_idx",
            "resource_provider_id",
            "resource_class_id",
        ),
    )


def create_aggregates() -> None:
    create_table(
        "placement_aggregates",
        auto_id(),
        sa.Column("uuid", sa.String(36), nullable=True),
        sa.UniqueConstraint("uuid", name="uniq_placement_aggregates0uuid"),
        sa.Index("ix_placement_aggregates_uuid", "uuid"),
    )
    create_table(
        "resource_provider_aggregates",
        sa.Column("resource_provider_id", sa.Integer, nullable=False),
        sa.Column("aggregate_id", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("resource_provider_id", "aggregate_id"),
        sa.Index("resource_provider_aggregates_aggregate_id_idx", "aggregate_id"),
    )


def create_traits() -> None:
    create_table(
        "traits",
        auto_id(),
        sa.Column("name", sa.String(255), nullable=False),
        sa.UniqueConstraint("name", name="uniq_traits0name"),
    )
    create_table(
        "resource_provider_traits",
        sa.Column("trait_id", sa.Integer, nullable=False),
        sa.Column("resource_provider_id", sa.Integer, nullable=False),
        # MySQL numbers foreign keys in this order.
        sa.ForeignKeyConstraint(["resource_provider_id"], ["resource_providers.id"]),
        sa.ForeignKeyConstraint(["trait_id"], ["traits.id"]),
        sa.PrimaryKeyConstraint("trait_id", "resource_provider_id"),
        sa.Index(
            "resource_provider_traits_resource_provider_trait_idx",
            "resource_provider_id",
            "trait_id",
        ),
    )


def create_consumers() -> None:
    create_table(
        "projects",
        auto_id(),
        sa.Column("external_id", sa.String(255), nullable=False),
        sa.UniqueConstraint("external_id", name="uniq_projects0external_id"),
    )
    create_table(
        "users",
        auto_id(),
        sa.Column("external_id", sa.String(255), nullable=False),
        sa.UniqueConstraint("external_id", name="uniq_users0external_id"),
    )
    create_table(
        "consumers",
        auto_id(),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.Integer, nullable=False),
        sa.Column("user_id", sa.Integer, nullable=False),
        sa.Column(
            "generation", sa.Integer, nullable=False, server_default=sa.text("0")
        ),
        sa.UniqueConstraint("uuid", name="uniq_consumers0uuid"),
        sa.Index("consumers_project_id_uuid_idx", "project_id", "uuid"),
        sa.Index(
            "consumers_project_id_user_id_uuid_idx", "project_id", "user_id", "uuid"
        ),
    )
    create_table(
        "allocations",
        auto_id(),
        sa.Column("resource_provider_id", sa.Integer, nullable=False),
        sa.Column("consumer_id", sa.String(36), nullable=False),
        sa.Column("resource_class_id", sa.Integer, nullable=False),
        sa.Column("used", sa.Integer, nullable=False),
        sa.Index(
            "allocations_resource_provider_class_used_idx",
            "resource_provider_id",
            "resource_class_id",
            "used",
        ),
        sa.Index("allocations_resource_class_id_idx", "resource_class_id"),
        sa.Index("allocations_consumer_id_idx", "consumer_id"),
    )


def create_table(name: str, *items: Any) -> None:
    """Create a table whose first two columns are the times of a row.

    MySQL commits each statement, so a migration that was interrupted may have created
    it, and some of its indexes.
    """
    columns = [
        sa.Column("created_at", sa.DateTime, nullable=True),
        sa.Column("updated_at", sa.DateTime, nullable=True),
        *(one for one in items if isinstance(one, sa.Column)),
    ]
    others = [one for one in items if not isinstance(one, sa.Column)]
    if _has_begun(name, {each.name for each in columns}):
        for one in others:
            if isinstance(one, sa.Index):
                step.create_index(str(one.name), name, [*one.expressions])
        return
    op.create_table(name, *columns, *others)


def _has_begun(table: str, columns: set[str]) -> bool:
    """Return whether an interrupted migration has created a table."""
    connection = op.get_bind()
    if connection.dialect.name not in ("mysql", "mariadb"):
        return False
    inspector = sa.inspect(connection)
    return inspector.has_table(table) and columns == {
        each["name"] for each in inspector.get_columns(table)
    }


def auto_id() -> sa.Column[int]:
    """Return the column ``id``, which the database increments."""
    return sa.Column("id", sa.Integer, primary_key=True, nullable=False)

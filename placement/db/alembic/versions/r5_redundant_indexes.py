"""Drop indexes whose columns a unique constraint covers."""

from alembic import op

revision = "a082b8bb98d0"
down_revision = "422ece571366"

REDUNDANT = [
    ("inventories_resource_provider_id_idx", "inventories"),
    ("inventories_resource_provider_resource_class_idx", "inventories"),
    ("ix_placement_aggregates_uuid", "placement_aggregates"),
    ("resource_providers_name_idx", "resource_providers"),
    ("resource_providers_uuid_idx", "resource_providers"),
]


def upgrade() -> None:
    for index, table in REDUNDANT:
        op.drop_index(index, table_name=table)

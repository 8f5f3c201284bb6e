"""Drop indexes whose columns a unique constraint covers."""

import sqlalchemy as sa
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
    # An operator may have dropped some of them, and MySQL commits each statement, so a
    # migration that did not come to its end may have dropped some, too.
    inspector = sa.inspect(op.get_bind())
    for index, table in REDUNDANT:
        if any(one["name"] == index for one in inspector.get_indexes(table)):
            op.drop_index(index, table_name=table)

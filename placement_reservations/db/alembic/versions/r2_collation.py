"""Let PostgreSQL compare and sort names byte by byte, as the other databases do."""

import sqlalchemy as sa
from alembic import op

from placement_foundation.database import column

revision = "a41c6f2e93d7"
down_revision = "5f0c2d81a9e4"

NAMES = {
    "leases": ("name", "user_id", "project_id"),
    "computehosts": (
        "hypervisor_hostname",
        "service_name",
        "hypervisor_type",
        "availability_zone",
    ),
    "computehost_extra_capabilities": ("name",),
    "host_properties": ("name",),
    "flavors": ("name", "resource_class", "project_id"),
    "claims": ("subject",),
    "debts": ("subject", "hypervisor_hostname"),
}


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    for table, names in NAMES.items():
        for name in names:
            op.alter_column(
                table, name, type_=column.word(255), existing_type=sa.String(255)
            )

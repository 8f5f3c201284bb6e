"""Record why a lease is not as it should be."""

from placement_foundation.database import column, step

revision = "c7e80b15d64f"
down_revision = "a41c6f2e93d7"


def upgrade() -> None:
    step.add_column("leases", "status_reason", column.text())

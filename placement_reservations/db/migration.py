"""The revisions of the schema."""

from placement_foundation.database.migration import History

SCHEMA = History("placement_reservations.db:alembic", head="e2b94a7c30f1")

"""The revisions of the schema."""

from placement_foundation.database.migration import History

SCHEMA = History("placement_reservations.db:alembic", head="83b6d20f5ea1")

"""The revisions of the schema."""

from placement_foundation.database.migration import History

SCHEMA = History("placement_reservations.db:alembic", head="5f0c2d81a9e4")

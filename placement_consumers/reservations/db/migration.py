"""The revisions of the schema."""

from placement_foundation.migration import History

SCHEMA = History("placement_consumers.reservations.db:alembic", head="5f0c2d81a9e4")

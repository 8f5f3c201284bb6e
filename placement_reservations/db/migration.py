"""The revisions of the schema."""

from placement_foundation.database.migration import History

SCHEMA = History("placement_reservations.db:alembic", head="a41c6f2e93d7")

"""The revisions of the schema."""

from placement_foundation.database.migration import History

SCHEMA = History("placement_reservations.db:alembic", head="c7e80b15d64f")

"""The revisions of the schema."""

from placement_foundation.database.migration import History

SCHEMA = History("placement_nodes.db:alembic", head="5c1d0e7a94b2")

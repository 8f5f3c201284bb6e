"""The revisions of the schema."""

from placement_foundation.migration import History

SCHEMA = History("placement_consumers.nodes.db:alembic", head="5c1d0e7a94b2")

"""The revisions of the schema: those of OpenStack Placement."""

from placement_foundation.migration import History

SCHEMA = History("placement.db:alembic", head="a082b8bb98d0")

"""The revisions of the schema: those of OpenStack Placement, and our own."""

from placement.db.own import content
from placement_foundation.database.migration import History

# Our own tables are recorded separately: either service can migrate the shared ones.
OWN = History(
    "placement.db:own",
    head="4f0b8d61e3c7",
    version_table="placement_server_version",
    content=content.CONTENT,
)
SCHEMA = History("placement.db:alembic", head="a082b8bb98d0", beside=OWN)

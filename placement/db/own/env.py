"""Runs the migrations on the connection that ``migration.History`` passes."""

from alembic import context

from placement_foundation.database import migration

if context.is_offline_mode():
    raise NotImplementedError(
        "Migrations look at the data: they run on a database, not into a script."
    )

migration.run(context)

"""Runs the migrations on the connection that ``migration.History`` passes."""

from alembic import context

from placement_foundation.database import migration

migration.run(context)

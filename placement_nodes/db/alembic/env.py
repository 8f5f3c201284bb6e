"""Runs the migrations on the connection that ``migration.History`` hands over."""

from alembic import context

from placement_foundation.database import migration

migration.run(context)

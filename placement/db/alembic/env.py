"""Runs the migrations on the connection that ``placement.db.migration`` hands over."""

from alembic import context

if context.is_offline_mode():
    raise NotImplementedError(
        "Migrations look at the data: they run on a database, not into a script."
    )

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()

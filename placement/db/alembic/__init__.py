"""The migrations. Run them with ``placement.db.migration``."""

"""The migrations. Run them with ``placement_consumers.nodes.db.migration``."""

"""The migrations. Run them with ``placement_nodes.db.migration``."""

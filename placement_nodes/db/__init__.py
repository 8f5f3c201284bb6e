"""The database of the node service."""

"""Checks whether a database is sound, and repairs."""

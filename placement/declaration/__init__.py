"""Declared hardware: trees in a file, compared with the stored ones, and applied."""

"""Declared hardware: what a file says there is, compared with what is, and applied."""

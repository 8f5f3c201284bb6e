"""``placement-apply``: compares and applies hardware that a file declares."""

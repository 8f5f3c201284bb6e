"""``placement-apply``: hardware that a file declares, compared and applied."""

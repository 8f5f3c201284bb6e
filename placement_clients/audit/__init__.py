"""``placement-audit``: claims of consumers that no longer live, and the reverse."""

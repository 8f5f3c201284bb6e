"""Each revision of the schema."""

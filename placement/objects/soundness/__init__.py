"""Whether a database is sound, and what mends it where it is not."""

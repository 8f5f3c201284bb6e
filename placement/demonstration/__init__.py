"""A cloud to look at, for users who have no data yet."""

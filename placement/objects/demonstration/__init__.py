"""A cloud to look at: for those who have no data yet."""

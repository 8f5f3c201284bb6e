"""Questions to a forest: functions from a cloud in memory to an answer."""

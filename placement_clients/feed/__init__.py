"""``placement-feed``: forwards what changes in Placement, and misses nothing."""

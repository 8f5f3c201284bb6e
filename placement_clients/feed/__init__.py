"""``placement-feed``: forwards every change in Placement."""

"""The agent that copies nodes to Placement."""

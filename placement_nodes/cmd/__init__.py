"""Commands: ``placement-nodes`` and ``placement-nodes-sync``."""

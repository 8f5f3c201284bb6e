"""The former name of ``placement_nodes``."""

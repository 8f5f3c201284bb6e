"""``placement-explain``: why nothing fits, how much still does, and what there is."""

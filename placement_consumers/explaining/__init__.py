"""Why nothing fits, how much still does, and what there is: ``placement-explain``."""

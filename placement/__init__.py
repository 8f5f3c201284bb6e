"""The placement service: what there is, and what uses how much of it."""

"""The placement service: who provides what, and who uses how much of it."""

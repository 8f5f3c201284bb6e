"""Many processes against a running service, and a check of all that it answered."""

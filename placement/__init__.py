"""The placement service: which resources there are, and what uses how much of them."""

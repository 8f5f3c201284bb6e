"""Applications for servers that import them."""

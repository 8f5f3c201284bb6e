"""Choosing where consumers go: from a forest to one candidate for each, pure."""

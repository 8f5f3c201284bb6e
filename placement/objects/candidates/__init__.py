"""Allocation candidates: what is loaded for a search, and what is done with it."""

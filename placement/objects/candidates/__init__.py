"""Allocation candidates: loading what a search needs, and making the answer."""

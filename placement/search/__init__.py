"""Allocation candidates: a search over plain values."""

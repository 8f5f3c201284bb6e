"""Measuring how fast the service answers about clouds of many sizes."""

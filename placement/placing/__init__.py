"""Requests for placements: read, choose, write, until no other request interferes."""
